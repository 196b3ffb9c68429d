// SPDX-License-Identifier: Apache-2.0
#include "explain/program_error.h"

#include <algorithm>
#include <string_view>

#include "base/format.h"
#include "explain/pattern_search.h"
#include "formats/prose/text_words.h"

namespace cufit::explain {
namespace {

// Python's built-in exceptions (Library Reference, "Built-in Exceptions") less those that speak for
// the system or a library: RuntimeError, OSError, ImportError, MemoryError, SystemError,
// ConnectionError and its kin, ChildProcessError, TimeoutError, BlockingIOError.
constexpr std::string_view k_ordinary[] = {"ArithmeticError",
                                           "AssertionError",
                                           "AttributeError",
                                           "BrokenPipeError",
                                           "EOFError",
                                           "FileExistsError",
                                           "FileNotFoundError",
                                           "FloatingPointError",
                                           "IndentationError",
                                           "IndexError",
                                           "IsADirectoryError",
                                           "KeyError",
                                           "KeyboardInterrupt",
                                           "LookupError",
                                           "NameError",
                                           "NotADirectoryError",
                                           "NotImplementedError",
                                           "OverflowError",
                                           "PermissionError",
                                           "RecursionError",
                                           "StopAsyncIteration",
                                           "StopIteration",
                                           "SyntaxError",
                                           "SystemExit",
                                           "TabError",
                                           "TypeError",
                                           "UnboundLocalError",
                                           "UnicodeDecodeError",
                                           "UnicodeEncodeError",
                                           "UnicodeError",
                                           "UnicodeTranslateError",
                                           "ValueError",
                                           "ZeroDivisionError"};
constexpr size_t k_end_lines = 12;  // where a refusal of arguments is looked for

// "json.decoder.JSONDecodeError: ..." -> the name before the colon or the end; else empty.
std::string_view exception_name(std::string_view line) {
  size_t end = 0;
  while (end < line.size() && (formats::is_name_char(line[end]) || line[end] == '.')) ++end;
  if (end == 0 || is_digit(line[0]) || line[0] == '.') return {};
  if (end < line.size() && line[end] != ':') return {};
  return line.substr(0, end);
}

// "No module named 'torch.nn'" -> "torch"
std::string missing_module(std::string_view line) {
  constexpr std::string_view k_words = "No module named '";
  const size_t at = line.find(k_words);
  if (at == line.npos) return {};
  const std::string_view rest = line.substr(at + k_words.size());
  return std::string(rest.substr(0, std::min(rest.find('\''), rest.find('.'))));
}

ProgramError of_exception(std::string_view line, std::string_view name) {
  ProgramError out;
  out.line = shortened(line, 0);
  out.kind = is_ordinary_exception(name) ? ProgramError::Kind::exception
                                         : ProgramError::Kind::other_exception;
  if (name == "ModuleNotFoundError") {
    out.module = missing_module(line);
    if (!out.module.empty()) out.kind = ProgramError::Kind::module;
  }
  return out;
}

}  // namespace

bool is_ordinary_exception(std::string_view name) {
  return std::find(std::begin(k_ordinary), std::end(k_ordinary), name) != std::end(k_ordinary);
}

std::optional<ProgramError> read_program_error(std::span<const formats::TextLine> lines) {
  size_t begin = lines.size();
  while (begin > 0 && !starts_with(lines[begin - 1].text, "Traceback (most recent call last)"))
    --begin;
  if (begin > 0) {
    for (size_t i = begin; i < lines.size(); ++i) {
      const std::string_view line = lines[i].text;
      if (line.empty() || line[0] == ' ' || line[0] == '\t') continue;
      const std::string_view name = exception_name(line);
      if (!name.empty()) return of_exception(line, name);
    }
  }
  size_t end = lines.size();
  while (end > 0 && trim(lines[end - 1].text).empty()) --end;
  if (end == 0) return std::nullopt;
  const std::string_view last = lines[end - 1].text;
  // A file that Python cannot parse has no traceback; `python -m` names a missing module bare.
  const std::string_view name = exception_name(last);
  if (is_ordinary_exception(name) && name.size() < last.size()) return of_exception(last, name);
  for (size_t i = end > k_end_lines ? end - k_end_lines : 0; i < end; ++i) {
    if (starts_with(lower(lines[i].text), "usage: "))
      return ProgramError{ProgramError::Kind::usage, shortened(last, 0), {}};
  }
  return std::nullopt;
}

}  // namespace cufit::explain
