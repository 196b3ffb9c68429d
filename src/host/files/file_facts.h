// SPDX-License-Identifier: Apache-2.0
// Facts from files: the value of a small file with its path as source, or why it could not be read.
// Used by probes.
#pragma once

#include <cstdint>
#include <string>

#include "base/fact.h"
#include "base/format.h"
#include "base/number.h"
#include "formats/prose/printable.h"
#include "host/files/host.h"

namespace cufit::host {

inline WhyNot why_of(Code code) {
  switch (code) {
    case Code::not_found:
      return WhyNot::not_present;
    case Code::no_permission:
      return WhyNot::no_permission;
    case Code::timeout:
      return WhyNot::timeout;
    case Code::unsupported:
      return WhyNot::not_supported;
    default:
      return WhyNot::malformed;
  }
}

template <class T>
Fact<T> missing_file(const Error& error, const std::string& path) {
  return missing<T>(why_of(error.code), SourceKind::file, path,
                    error.code == Code::not_found ? "" : error.what);
}

// The trimmed text of a one-line file, as sysfs and procfs have them. An empty file is malformed:
// it says nothing.
inline Fact<std::string> line_fact(const Host& host, const std::string& path) {
  Result<std::string> text = host.read_head(path, 4096);
  if (!text) return missing_file<std::string>(text.error(), path);
  std::string_view line = trim(*text);
  while (!line.empty() && line.back() == '\0')
    line.remove_suffix(1);  // device tree texts end in a zero byte
  if (line.empty())
    return missing<std::string>(WhyNot::malformed, SourceKind::file, path, "the file is empty");
  return known(formats::printable(line.substr(0, line.find('\n'))), SourceKind::file, path);
}

inline Fact<uint64_t> number_fact(const Host& host, const std::string& path) {
  Fact<std::string> line = line_fact(host, path);
  if (!line) return missing<uint64_t>(line.why, SourceKind::file, path, line.note);
  std::optional<uint64_t> number = parse_uint(*line);
  if (!number)
    return missing<uint64_t>(WhyNot::malformed, SourceKind::file, path, "no number: " + *line);
  return known(*number, SourceKind::file, path);
}

}  // namespace cufit::host
