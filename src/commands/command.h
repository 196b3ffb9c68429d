// SPDX-License-Identifier: Apache-2.0
// One row per command; help, man page, completions and "did you mean" come from the row. To add a
// command: commands/<name>.cc with its run function, one row in table.cc, one folder in tests/cli/.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "commands/context.h"
#include "commands/option.h"

namespace cufit::commands {

struct Command {
  std::string_view name;  // "doctor"; of a family two words: "mem replay"
  std::span<const Option> options;
  bool hidden = false;                 // not listed by `cufit` alone
  const void* request_type = nullptr;  // that its options fill: of k_request_type
  std::shared_ptr<void> (*make_request)() = nullptr;
  int (*run)(const Context& context, const void* request) = nullptr;
};

// The row of a command: `Run` is `int run_doctor(const Context&, const DoctorRequest&)`.
template <class Request, int (*Run)(const Context&, const Request&)>
Command command(std::string_view name, std::span<const Option> options) {
  Command row;
  row.name = name;
  row.options = options;
  row.request_type = &k_request_type<Request>;
  row.make_request = [] { return std::shared_ptr<void>(std::make_shared<Request>()); };
  row.run = [](const Context& context, const void* request) {
    return Run(context, *static_cast<const Request*>(request));
  };
  return row;
}

// "mem" of "mem replay"; empty for a command of one word.
inline std::string_view family_of(const Command& command) {
  const size_t space = command.name.find(' ');
  return space == std::string_view::npos ? std::string_view() : command.name.substr(0, space);
}

std::span<const Command> table();  // table.cc
// main's whole work on this machine: parse, look up, run.
int run(int argc, const char* const* argv);
// The same with other machines, or streams that a test reads.
int run(const Surroundings& surroundings, int argc, const char* const* argv);

}  // namespace cufit::commands
