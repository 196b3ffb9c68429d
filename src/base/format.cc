// SPDX-License-Identifier: Apache-2.0
#define FMT_HEADER_ONLY
#include "base/format.h"

#include <fmt/format.h>

namespace cufit {

std::string format_runtime(fmt::string_view text, fmt::format_args args) {
  return fmt::vformat(text, args);
}

std::string format_bytes(unsigned long long bytes) {
  static const char* const k_units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 6) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  return (unit >= 3 || value < 10) ? fmt::format("{:.1f} {}", value, k_units[unit])
                                   : fmt::format("{:.0f} {}", value, k_units[unit]);
}

std::string_view trim(std::string_view text) {
  const char* const k_space = " \t\r\n\v\f";
  size_t first = text.find_first_not_of(k_space);
  if (first == std::string_view::npos) return {};
  size_t last = text.find_last_not_of(k_space);
  return text.substr(first, last - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  size_t start = 0;
  while (true) {
    size_t end = text.find(separator, start);
    if (end == std::string_view::npos) {
      out.push_back(text.substr(start));
      return out;
    }
    out.push_back(text.substr(start, end - start));
    start = end + 1;
  }
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> out = split(text, '\n');
  if (!out.empty() && out.back().empty()) out.pop_back();
  for (std::string_view& line : out)
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return out;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i) out += separator;
    out += parts[i];
  }
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}
bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}
bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace cufit
