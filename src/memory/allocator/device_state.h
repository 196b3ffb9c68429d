// SPDX-License-Identifier: Apache-2.0
// What one device's allocator knows: the parts (split, expandable_segment, garbage_collection,
// release) are functions over it, and CachingAllocator puts them together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "memory/allocator/allocator_settings.h"
#include "memory/allocator/block.h"
#include "memory/allocator/block_pool.h"
#include "memory/allocator/device_memory.h"
#include "memory/allocator/version_profile.h"

namespace cufit::memory {

struct Stat {
  uint64_t current = 0;
  uint64_t peak = 0;
  void increase(uint64_t amount) {
    current += amount;
    if (current > peak) peak = current;
  }
  void decrease(uint64_t amount) { current -= amount; }
};

struct DeviceStats {
  Stat allocated_bytes;  // of blocks in the program's hands
  Stat active_bytes;     // and of those that wait for events
  Stat requested_bytes;  // what the program asked for
  Stat reserved_bytes;   // held from the driver, all pools
  Stat segments;         // as PyTorch counts them: without expandable ones
  uint64_t cuda_mallocs = 0, cuda_frees = 0;
  uint64_t maps = 0, unmaps = 0;
  uint64_t num_alloc_retries = 0;
  uint64_t num_ooms = 0;
  uint64_t num_oom_rejections = 0;
};

enum class SegmentAction : uint8_t { segment_alloc, segment_free, segment_map, segment_unmap };

struct SegmentEvent {
  SegmentAction action;
  uint64_t address;
  uint64_t size;
  uint64_t stream;
  uint64_t at;  // CachingAllocator::set_event of the moment
};

struct ExpandableSegment {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t page = 0;
  bool live = false;
};

struct DeviceState {
  Settings settings;
  VersionProfile version;
  DeviceMemory* memory = nullptr;
  uint64_t total_memory = 0;  // of the card; sizes the reservation of expandable segments
  std::optional<uint64_t> allowed_memory_maximum;

  BlockStore blocks;
  Streams streams;
  std::vector<std::unique_ptr<PrivatePool>> pools;  // [0] is the default one
  std::vector<ExpandableSegment> expandable_segments;
  std::vector<BlockHandle> pending;  // freed, waiting for events; in the order of the frees
  DeviceStats stats;
  std::vector<SegmentEvent>* log = nullptr;
  uint64_t event = 0;

  bool collects_garbage() const {
    return allowed_memory_maximum && settings.garbage_collection_threshold > 0;
  }
  PrivatePool& owner(const BlockPool& pool) { return *pools[pool.owner]; }
  bool uses_expandable(const BlockPool& pool) {
    return settings.expandable_segments && !owner(pool).options.own_allocator;
  }
  void record(SegmentAction action, uint64_t address, uint64_t size, StreamIndex stream) {
    if (log != nullptr) log->push_back({action, address, size, streams.value(stream), event});
  }
};

// Freed by the program and not yet completed.
inline bool is_pending(const DeviceState& state, BlockHandle handle) {
  const PoolBlock& block = state.blocks[handle.block];
  return block.in_use && block.serial == handle.serial && block.state == BlockUse::pending_free;
}

// A request on its way through malloc.
struct AllocParams {
  uint64_t requested = 0;
  uint64_t size = 0;        // rounded
  uint64_t alloc_size = 0;  // of the segment, if one is needed
  StreamIndex stream = 0;
  BlockPool* pool = nullptr;
  bool expandable_active = false;
  BlockIndex block = k_none;  // once found
  bool is_from_pool = false;  // and still there:
  FreeBlocks::Position place{};
};

}  // namespace cufit::memory
