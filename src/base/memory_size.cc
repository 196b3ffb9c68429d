// SPDX-License-Identifier: Apache-2.0
#include "base/memory_size.h"

#include <cctype>
#include <cstdlib>
#include <string>

#include "base/format.h"

namespace cufit {

std::optional<uint64_t> parse_memory_size(std::string_view text) {
  size_t used = 0;
  while (used < text.size() &&
         (std::isdigit(static_cast<unsigned char>(text[used])) != 0 || text[used] == '.'))
    ++used;
  // std::from_chars for double is missing in g++ 10.
  const std::string digits(text.substr(0, used));
  char* end = nullptr;
  const double number = std::strtod(digits.c_str(), &end);
  const std::string unit = lower(trim(text.substr(used)));
  double scale = 0;
  if (unit.empty() || unit == "gib" || unit == "gi" || unit == "g" || unit == "gb")
    scale = 1u << 30;
  if (unit == "mib" || unit == "mi" || unit == "m" || unit == "mb") scale = 1u << 20;
  if (used == 0 || *end != '\0' || scale == 0 || !(number > 0) || number * scale > 1e16)
    return std::nullopt;
  return static_cast<uint64_t>(number * scale);
}

}  // namespace cufit
