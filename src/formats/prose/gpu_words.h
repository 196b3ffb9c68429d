// SPDX-License-Identifier: Apache-2.0
// NVIDIA boards as people write them: "RTX 5090", "gtx3090", "2x Tesla V100-SXM2-16GB", "A100
// 40GB", "5070Ti", "Jetson AGX Orin". Found by their pattern only: whether such a board exists is
// the table's business (knowledge/), which is why a match is a candidate and not a fact.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cufit::formats {

struct GpuWords {
  std::string name;        // "RTX 5090", "Tesla V100-SXM2-16GB": as written, blanks single
  uint32_t count = 0;      // "2x", "four"; 0 = not said
  uint32_t memory_gb = 0;  // "A100 40GB" -> 40; 0 = not said
  size_t start = 0, end = 0;
};

// At most 16 a line.
std::vector<GpuWords> find_gpu_words(std::string_view line);

}  // namespace cufit::formats
