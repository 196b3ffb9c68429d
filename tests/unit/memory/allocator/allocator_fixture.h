// SPDX-License-Identifier: Apache-2.0
// An allocator over synthetic memory at ascending addresses from 0, for hand-computed examples.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "memory/allocator/caching_allocator.h"

namespace cufit::memory {

struct Bench {
  static constexpr uint64_t base = uint64_t{1} << 46;

  explicit Bench(const char* settings = "", uint64_t limit = 0, uint64_t capacity = 0,
                 uint32_t minor = 14)
      : memory(capacity, SyntheticMemory::Order::ascending),
        allocator(options(settings, limit, minor), memory, &log) {}

  static AllocatorOptions options(const char* settings, uint64_t limit, uint32_t minor) {
    AllocatorOptions options;
    options.version = version_profile(2, minor);
    auto parsed = parse_allocator_settings(settings, options.version);
    EXPECT_TRUE(parsed) << settings;
    if (parsed) options.settings = *parsed;
    if (limit != 0) options.allowed_memory_maximum = limit;
    options.total_memory = 800 * k_mib;
    return options;
  }

  BlockHandle get(uint64_t size, uint64_t stream = 0) {
    return allocator.malloc(size, allocator.stream(stream));
  }
  uint64_t at(BlockHandle handle) const { return allocator.block(handle).ptr - base; }
  uint64_t reserved() const { return allocator.stats().reserved_bytes.current; }

  // "a 0 20 f 0 20": action, address and size in MiB of every segment call.
  std::string calls() const {
    std::string text;
    for (const SegmentEvent& event : log) {
      if (!text.empty()) text += ' ';
      text += "afmu"[static_cast<int>(event.action)];
      text += ' ' + std::to_string((event.address - base) / k_mib);
      text += ' ' + std::to_string(event.size / k_mib);
    }
    return text;
  }

  std::vector<SegmentEvent> log;
  SyntheticMemory memory;
  CachingAllocator allocator;
};

}  // namespace cufit::memory
