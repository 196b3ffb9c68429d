// SPDX-License-Identifier: Apache-2.0
// Errors as values. An Error is about cufit's own work ("could not read this file"); what is wrong
// with the user's machine is a Finding (checks/finding.h) and never an Error.
//
// Result<T> subclasses tl::expected only to carry [[nodiscard]]: the plain type may be dropped
// silently.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace cufit {

enum class Code { not_found, no_permission, unsupported, malformed, io, timeout, cancelled, usage };

const char* to_string(Code code);

struct Error {
  Code code = Code::io;
  std::string what;                // one sentence, names the file and, for formats, the byte offset
  std::vector<std::string> trail;  // outermost context last

  // Adds one line of context at a border: `return error.in("reading torch's METADATA")`.
  Error in(std::string context) && {
    trail.push_back(std::move(context));
    return std::move(*this);
  }
  std::string text() const;  // "context: ...: what"
};

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using Base = tl::expected<T, Error>;
  using Base::Base;
  Result(Error error) : Base(tl::unexpect, std::move(error)) {}
  Result(Base&& base) : Base(std::move(base)) {}
};

inline Error fail(Code code, std::string what) { return Error{code, std::move(what), {}}; }

[[noreturn]] void check_failed(const char* condition, const char* file, int line, const char* why);

}  // namespace cufit

#define CUFIT_CONCAT_(a, b) a##b
#define CUFIT_CONCAT(a, b) CUFIT_CONCAT_(a, b)
// CUFIT_TRY(name, expr): declares `name` from a Result or returns its error. A macro because C++20
// has no `?`.
#define CUFIT_TRY(name, expr)                                                  \
  auto CUFIT_CONCAT(result_, __LINE__) = (expr);                               \
  if (!CUFIT_CONCAT(result_, __LINE__))                                        \
    return ::cufit::Error(std::move(CUFIT_CONCAT(result_, __LINE__).error())); \
  auto name = std::move(*CUFIT_CONCAT(result_, __LINE__))
// A broken invariant of cufit itself: aborts in every build. Input from outside must never reach
// one.
#define CUFIT_CHECK(condition, why) \
  ((condition) ? void(0) : ::cufit::check_failed(#condition, __FILE__, __LINE__, why))
