// SPDX-License-Identifier: Apache-2.0
// A fact: what a machine (or a text about it) says, with where it came from, or why it is missing.
// Absent is not zero, unknown is not fine: a check that lacks a fact says `unknown` with the reason
// in WhyNot.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace cufit {

enum class SourceKind { file, nvml, cuda, env, command, claimed, assumed };
// claimed: read from a text somebody pasted (detail "dump.txt:12"); assumed: given with --gpu or
// --driver.

struct Source {
  SourceKind kind = SourceKind::file;
  std::string detail;  // "/sys/module/nvidia/version", "nvmlDeviceGetName", "LD_LIBRARY_PATH"
};

enum class WhyNot {
  not_present,
  no_permission,
  not_supported,
  malformed,
  timeout,
  crashed,
  not_asked
};

const char* to_string(SourceKind kind);
const char* to_string(WhyNot why);

template <class T>
struct Fact {
  std::optional<T> value;
  Source source;                   // where it was read or, when missing, what was tried
  WhyNot why = WhyNot::not_asked;  // only meaningful without a value
  std::string note;  // only without a value: the message ("permission denied"), one line

  explicit operator bool() const { return value.has_value(); }
  const T& operator*() const { return *value; }
  const T* operator->() const { return &*value; }
  T value_or(T other) const { return value ? *value : std::move(other); }
};

template <class T>
Fact<T> known(T value, SourceKind kind, std::string detail) {
  return Fact<T>{std::move(value), Source{kind, std::move(detail)}, WhyNot::not_asked, {}};
}
template <class T>
Fact<T> missing(WhyNot why, SourceKind kind, std::string tried, std::string note = {}) {
  return Fact<T>{std::nullopt, Source{kind, std::move(tried)}, why, std::move(note)};
}

}  // namespace cufit
