// SPDX-License-Identifier: Apache-2.0
#include "commands/watch/sample_times.h"

#include <cmath>

#include "base/format.h"
#include "base/number.h"

namespace cufit::commands {
namespace {

constexpr double k_least_interval = 0.1;

std::optional<double> decimal(std::string_view text) {
  const size_t dot = text.find('.');
  const std::optional<uint64_t> whole = parse_uint(text.substr(0, dot));
  if (!whole || *whole > 1000000) return std::nullopt;
  if (dot == std::string_view::npos) return static_cast<double>(*whole);
  const std::string_view digits = text.substr(dot + 1);
  const std::optional<uint64_t> part = parse_uint(digits);
  if (!part || digits.size() > 6) return std::nullopt;
  return static_cast<double>(*whole) +
         static_cast<double>(*part) / std::pow(10.0, static_cast<double>(digits.size()));
}

}  // namespace

Result<double> read_interval(const std::optional<std::string>& text, double otherwise,
                             double most) {
  if (!text) return otherwise;
  const std::optional<double> seconds = decimal(*text);
  if (!seconds || *seconds < k_least_interval || *seconds > most)
    return fail(Code::usage, format("`--interval {}`: 0.1 to {} seconds", *text, most));
  return *seconds;
}

}  // namespace cufit::commands
