// SPDX-License-Identifier: Apache-2.0
#include "resolve/quota/spill_size.h"

#include <iterator>

#include "base/format.h"
#include "base/memory_size.h"

namespace cufit::resolve {

std::optional<VramProblem> parse_spill(std::string_view text, SpillRequest& out) {
  const VramProblem problem{"spill_size", {{"text", std::string(text)}}};
  out = {};
  for (const std::string_view part : split(text, ',')) {
    const std::string_view word = trim(part);
    if (word == "optimizer" || word == "always") {
      if (out.optimizer) return problem;
      out.optimizer = true;
      out.always = word == "always";
      continue;
    }
    const std::optional<uint64_t> bytes = parse_memory_size(word);
    if (!bytes || *bytes == 0 || out.emergency_bytes != 0) return problem;
    out.emergency_bytes = *bytes;
  }
  return std::nullopt;
}

uint64_t link_rate(uint32_t generation, uint32_t width) {
  // Gigatransfers a second of a lane (PCI-SIG, base specifications 3.0 to 6.0), 8 of them a byte, and 128b/130b codes. Of
  // that a GPU reads about 85 %: 53 of 63 GB/s on an H200 with generation 5 and 16 lanes.
  constexpr double k_rates[] = {0, 2.5 * 0.8, 5 * 0.8, 8, 16, 32, 64};
  if (generation == 0 || generation >= std::size(k_rates) || width == 0 || width > 32) return 0;
  return static_cast<uint64_t>(k_rates[generation] * 1e9 / 8 * width * 0.85);
}

}  // namespace cufit::resolve
