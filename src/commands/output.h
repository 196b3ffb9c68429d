// SPDX-License-Identifier: Apache-2.0
// How a command talks to this user: language, colour, width, and the two streams.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "commands/exit.h"
#include "host/files/host.h"
#include "knowledge/knowledge.h"
#include "report/report.h"

namespace cufit::commands {

enum class Language { en, zh };                  // --lang
enum class Colour { automatic, always, never };  // --color

// Where text goes; `out` says whether it could be written.
struct Streams {
  std::function<bool(std::string_view)> out;
  std::function<void(std::string_view)> error;
};
Streams standard_streams();

class Output {
 public:
  // `asked`: of --lang; else CUFIT_LANG, LC_ALL, LC_MESSAGES, LANG of `variables` in this order:
  // "zh*" is Chinese, everything else English. Automatic colour: stdout is a terminal and neither
  // NO_COLOR nor TERM=dumb is set. Width: COLUMNS, the terminal, 100.
  Output(const host::Host& variables, const knowledge::Knowledge& knowledge, Streams streams,
         std::optional<Language> asked, Colour colour);

  const std::string& language() const { return style_.lang; }
  report::Style style(bool verbose = false) const;

  // Writes results to stdout; Exit::k_failed when stdout is closed or full, else `exit_code`.
  int print(std::string_view text, int exit_code) const;
  // Text for stderr as it is, such as a report beside a program's own output.
  void print_beside(std::string_view text) const;
  // "cufit: <message>" on stderr, in the user's language where it is one of cufit's own sentences
  // (report/error_translation.h).
  void print_error(const std::string& message) const;
  // The same as it is: a sentence in the user's language that quotes what a program said.
  void print_message(const std::string& message) const;
  // Says the error and returns the exit code that belongs to it.
  int exit_code_for(const Error& error) const;

 private:
  const knowledge::Knowledge& knowledge_;
  Streams streams_;
  report::Style style_;
};

}  // namespace cufit::commands
