// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/abi/gpu_ring.h"
#include "facts/ring_text.h"
#include "formats/system/gpu_ring.h"

// Seeds are short: what they leave out of the file's 262144 bytes is zero, after an event list that repeats the input.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  (void)cufit::formats::parse_gpu_ring(bytes);
  bytes.resize(CUFIT_RING_BYTES);
  for (size_t at = 0; size && at < size && at + CUFIT_RING_HEADER_BYTES < bytes.size(); ++at)
    bytes[CUFIT_RING_HEADER_BYTES + at] = static_cast<char>(data[at]);
  auto read = cufit::formats::parse_gpu_ring(bytes);
  if (!read) return 0;
  if (read->events.size() + read->torn_events > CUFIT_RING_EVENTS) __builtin_trap();
  for (const auto& event : read->events)
    if (static_cast<int>(event.kind) > CUFIT_RING_KIND_LAST) __builtin_trap();
  // Of a hostile file the lines are still lines: nothing of it breaks out of its own.
  for (const auto& line : cufit::facts::ring_lines(*read))
    for (const auto& [name, value] : line.args)
      for (const char c : value)
        if (static_cast<unsigned char>(c) < 0x20) __builtin_trap();
  return 0;
}
