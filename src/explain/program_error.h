// SPDX-License-Identifier: Apache-2.0
// How a program says itself that it failed: the last line of a Python traceback, a refusal of its
// arguments. That is no cause that the tables know, and mostly the whole answer.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/prose/text_lines.h"

namespace cufit::explain {

struct ProgramError {
  // exception: one that a program's own logic raises (ValueError, KeyError, ...), which machine and
  // libraries rarely do; other_exception: any other (RuntimeError, OSError, a library's own);
  // module: an import found no module of that name; usage: it refused its arguments.
  enum class Kind { exception, other_exception, module, usage };
  Kind kind = Kind::exception;
  std::string line;    // as it stands, shortened
  std::string module;  // of Kind::module, its first part: "torch"
};

// One that a program's own logic raises: ValueError, KeyError, ...
bool is_ordinary_exception(std::string_view name);

// Of the last traceback or the last lines; nullopt = nothing of that kind.
std::optional<ProgramError> read_program_error(std::span<const formats::TextLine> lines);

}  // namespace cufit::explain
