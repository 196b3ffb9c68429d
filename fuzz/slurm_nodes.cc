// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/system/slurm_nodes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const cufit::formats::SlurmNodeGres& node : cufit::formats::parse_slurm_nodes(text)) {
    if (node.name.empty() || node.gpus.size() > 64) __builtin_trap();
    for (const cufit::formats::SlurmGpuType& type : node.gpus)
      if (type.type.find_first_of("$`'\" \n;&|") != std::string::npos) __builtin_trap();
  }
  return 0;
}
