// SPDX-License-Identifier: Apache-2.0
// One row per command; help, man page, completions and "did you mean" come from the row. To add a
// command: commands/<name>.cc with its run function, one row in table.cc, one folder in tests/cli/.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cufit::commands {

// Exit codes of every command.
// k_refused: `cufit run` started no program; a finding like any other, and preflight asks
// beforehand.
enum Exit {
  k_ok = 0,
  k_findings = 1,
  k_usage = 2,
  k_failed = 3,
  k_refused = 1,
  k_interrupted = 130
};

struct Option {
  std::string_view flags;  // "-v,--verbose" or "--env"; positional: "PATH"
  std::string_view value;  // "DIR"; empty = a switch
  std::string_view help;   // always empty: the texts are in data/messages/help.toml
  bool repeats = false;
  std::string_view choices;  // "en zh": completion and validation; empty = free
  bool required = false;     // a positional that the command cannot do without: shown unbracketed
};

inline bool is_positional(const Option& option) { return option.flags[0] != '-'; }

// Parsed arguments by long name without dashes ("env"), positional by its name ("PATH").
class Arguments {
 public:
  bool has(std::string_view name) const;
  std::string get(std::string_view name, std::string_view otherwise = "") const;
  std::vector<std::string> all(std::string_view name) const;
  void add(std::string name, std::string value);

 private:
  std::vector<std::pair<std::string, std::string>> values_;
};

struct Command {
  std::string_view name;     // "doctor"; of a family two words: "mem replay"
  std::string_view summary;  // always empty, as above
  std::span<const Option> options;
  int (*run)(const Arguments& arguments);
  bool hidden = false;  // not listed by `cufit` alone
};

// "mem" of "mem replay"; empty for a command of one word.
inline std::string_view family_of(const Command& command) {
  const size_t space = command.name.find(' ');
  return space == std::string_view::npos ? std::string_view() : command.name.substr(0, space);
}

std::span<const Command> table();            // table.cc
int run(int argc, const char* const* argv);  // main's whole work: parse, look up, run

}  // namespace cufit::commands
