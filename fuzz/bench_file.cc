// SPDX-License-Identifier: Apache-2.0
#include "formats/bench/bench_file.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = cufit::formats::parse_bench_file(text, "f");
  if (!file) return 0;
  for (const cufit::formats::BenchPair& pair : file->pairs)
    if (pair.base >= file->torches.size() || pair.other >= file->torches.size() || !(pair.low > 0))
      __builtin_trap();
  return 0;
}
