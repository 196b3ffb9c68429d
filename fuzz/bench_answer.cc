// SPDX-License-Identifier: Apache-2.0
#include "formats/bench/bench_answer.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  (void)cufit::formats::parse_bench_hello(line);
  (void)cufit::formats::parse_bench_loaded(line);
  const auto block = cufit::formats::parse_bench_block(line);
  // Rates are made of these.
  if (block.refusal.kind.empty() && (block.value.calls == 0 || !(block.value.seconds > 0)))
    __builtin_trap();
  return 0;
}
