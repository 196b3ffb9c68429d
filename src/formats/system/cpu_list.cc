// SPDX-License-Identifier: Apache-2.0
#include "formats/system/cpu_list.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"

namespace cufit::formats {

std::optional<std::vector<uint32_t>> parse_cpu_list(std::string_view text) {
  constexpr uint64_t k_highest = 65535;
  std::vector<uint32_t> out;
  text = trim(text);
  if (text.empty()) return out;
  std::vector<std::string_view> ranges = split(text, ',');
  if (ranges.size() > k_highest) return std::nullopt;
  for (std::string_view range : ranges) {
    size_t dash = range.find('-');
    std::optional<uint64_t> first = parse_uint(range.substr(0, dash));
    std::optional<uint64_t> last =
        dash == std::string_view::npos ? first : parse_uint(range.substr(dash + 1));
    if (!first || !last || *last < *first || *last > k_highest) return std::nullopt;
    // Ranges of one list do not overlap, so that no text makes this longer than there are numbers.
    if (out.size() + (*last - *first) > k_highest) return std::nullopt;
    for (uint64_t cpu = *first; cpu <= *last; ++cpu) out.push_back(static_cast<uint32_t>(cpu));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string cpu_list_text(const std::vector<uint32_t>& ascending) {
  std::string out;
  for (size_t i = 0; i < ascending.size();) {
    size_t end = i + 1;
    while (end < ascending.size() && ascending[end] == ascending[end - 1] + 1) ++end;
    if (!out.empty()) out += ',';
    out += std::to_string(ascending[i]);
    if (end - i > 1) out += (end - i == 2 ? ',' : '-') + std::to_string(ascending[end - 1]);
    i = end;
  }
  return out;
}

}  // namespace cufit::formats
