// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cmath>

#include "base/format.h"
#include "formats/system/kubernetes_objects.h"

namespace cufit::formats {

// k8s.io/apimachinery/pkg/api/resource: digits, then n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an
// exponent.
std::optional<double> parse_quantity(std::string_view text) {
  std::string_view rest = trim(text);
  if (!rest.empty() && rest[0] == '+') rest.remove_prefix(1);
  const size_t digits = rest.find_first_not_of("-0123456789.");
  const std::string number(rest.substr(0, digits));
  std::string_view unit = digits == std::string_view::npos ? "" : rest.substr(digits);
  if (number.empty() || number.size() > 30) return std::nullopt;
  // strtod would read a comma in some languages' place of the point
  double value = 0;
  const size_t point = number.find('.');
  int64_t whole = 0;
  const std::string before = number.substr(0, point);
  const auto read = std::from_chars(before.data(), before.data() + before.size(), whole);
  if (before != "" && (read.ec != std::errc() || read.ptr != before.data() + before.size()))
    return std::nullopt;
  value = static_cast<double>(whole);
  if (point != std::string::npos) {
    double scale = 1;
    for (const char c : number.substr(point + 1)) {
      if (c < '0' || c > '9') return std::nullopt;
      scale /= 10;
      value += (number[0] == '-' ? -1 : 1) * scale * (c - '0');
    }
  }
  static const std::pair<std::string_view, double> k_units[] = {
      {"", 1},        {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},   {"k", 1e3},     {"M", 1e6},
      {"G", 1e9},     {"T", 1e12},    {"P", 1e15},    {"E", 1e18},   {"Ki", 1024.0}, {"Mi", 0x1p20},
      {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}};
  for (const auto& [name, factor] : k_units)
    if (unit == name) return value * factor;
  if (unit.size() > 1 && (unit[0] == 'e' || unit[0] == 'E')) {
    int exponent = 0;
    unit.remove_prefix(unit[1] == '+' ? 2 : 1);
    const auto end = std::from_chars(unit.data(), unit.data() + unit.size(), exponent);
    if (end.ec == std::errc() && end.ptr == unit.data() + unit.size() && exponent > -20 &&
        exponent < 20)
      return value * std::pow(10.0, exponent);
  }
  return std::nullopt;
}

}  // namespace cufit::formats
