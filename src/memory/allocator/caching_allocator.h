// SPDX-License-Identifier: Apache-2.0
// PyTorch's DeviceCachingAllocator for one device, without the device: the same requests in the
// same order give the same blocks, segment calls, peaks and out-of-memory as the real one. Two
// devices are two of these. Not modelled: FreeMemoryCallbacks, reuse inside a capture
// (graph_capture_record_stream_reuse), cudaMallocAsync, and when events of other streams complete,
// which the caller says (free_completed).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "memory/allocator/device_state.h"

namespace cufit::memory {

struct AllocatorOptions {
  Settings settings;
  VersionProfile version;
  // set_per_process_memory_fraction as bytes; settings.per_process_memory_fraction of total_memory
  // when empty.
  std::optional<uint64_t> allowed_memory_maximum;
  uint64_t total_memory = uint64_t{141} << 30;  // of the card
};

// What the allocator keeps below, bytes; none where nothing bounds it.
std::optional<uint64_t> allowed_memory(const AllocatorOptions& options);

struct OutOfMemory {
  uint64_t event = 0;
  uint64_t requested = 0;
  uint64_t rounded = 0;
  uint64_t tried = 0;  // the segment: what the message calls "Tried to allocate"
  uint64_t allocated = 0;
  uint64_t reserved = 0;
  std::optional<uint64_t> allowed;
  uint64_t largest_free_in_pool = 0;  // of the request's pool and stream
  uint64_t largest_free = 0;          // of any
  bool rejected = false;              // throw_on_cudamalloc_oom: nothing was released first
  // A block that waited for an event came back while memory was released, but PyTorch does not
  // search the pool again: the same request a moment later succeeds (pytorch/pytorch#189504).
  bool cached_block_would_do = false;
};

// What is known of a block or segment from outside; also the form in which a state that a recording
// starts with is handed in.
struct BlockView {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t requested_size = 0;
  BlockUse state = BlockUse::inactive;
  BlockHandle handle;
};
struct SegmentView {
  uint64_t address = 0;  // of an expandable one: of the mapped range
  uint64_t size = 0;
  uint64_t stream = 0;
  uint32_t pool = 0;
  bool is_small = false;
  bool is_expandable = false;
  std::vector<BlockView> blocks;  // by address, without gaps
};

class CachingAllocator {
 public:
  // `memory` outlives the allocator. `log`, if given, receives every segment call.
  CachingAllocator(const AllocatorOptions& options, DeviceMemory& memory,
                   std::vector<SegmentEvent>* log = nullptr);
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // Handle values as in a trace; ask once and keep the index.
  StreamIndex stream(uint64_t value) { return state_.streams.find_or_add(value); }
  // Goes into SegmentEvent::at and OutOfMemory::event.
  void set_event(uint64_t event) { state_.event = event; }

  // A false handle: out of memory, see last_oom(). The pool is the default one, or that of
  // begin_allocate_to_pool, or the one named.
  BlockHandle malloc(uint64_t size, StreamIndex stream = 0);
  BlockHandle malloc_in_pool(uint64_t size, StreamIndex stream, uint32_t pool);
  // Whether malloc, whose first driver call fails, would release the segment at this address first.
  // False also when a free block serves the request. Changes nothing.
  bool would_release_first(uint64_t address, uint64_t size, StreamIndex stream, uint32_t pool);
  void record_stream(BlockHandle handle, StreamIndex stream);
  // The program frees; the block waits for free_completed if record_stream named another stream.
  void free(BlockHandle handle);
  // The same in the two steps of a trace. The second does nothing to a block that a release has
  // already completed.
  void free_requested(BlockHandle handle);
  void free_completed(BlockHandle handle);
  void empty_cache() { empty_cache_of(0); }
  void empty_cache_of(uint32_t private_pool);

  // Private pools: 1, 2, ... Allocations of all streams, or of one, go there between begin and end.
  uint32_t create_pool(const PoolOptions& options);
  void retain_pool(uint32_t pool);  // a MemPool object; a capture holds it by begin
  void begin_allocate_to_pool(uint32_t pool, std::optional<StreamIndex> only, bool is_capture);
  void end_allocate_to_pool(uint32_t pool);
  void release_pool(uint32_t pool);

  // Puts a segment there as if it had been allocated before; counts in reserved and allocated, not
  // in the log. Fills the blocks' handles. Its blocks, at least one, cover it. Segments of one
  // expandable reservation come by address.
  void adopt(SegmentView& segment);

  const DeviceStats& stats() const { return state_.stats; }
  const OutOfMemory& last_oom() const { return oom_; }
  const PoolBlock& block(BlockHandle handle) const { return state_.blocks[handle.block]; }
  std::vector<SegmentView> segments() const;  // by address
  uint64_t releasable() const;                // by empty_cache, pending frees not counted
  const DeviceState& state() const { return state_; }

 private:
  struct PoolUnderway {
    uint32_t pool;
    std::optional<StreamIndex> only;
    bool is_capture;
  };

  uint32_t pool_for(StreamIndex stream) const;
  bool may_release() const;
  AllocParams params_for(uint64_t requested, StreamIndex stream, uint32_t pool);
  bool get_free_block(AllocParams& params);
  bool alloc_block(AllocParams& params, bool is_retry);
  bool exceeds_limit(const AllocParams& params) const;
  bool find_or_make_block(AllocParams& params);
  bool try_mempool_fallback(AllocParams& params);
  BlockHandle alloc_found_block(AllocParams& params);
  void leave_program(BlockHandle handle);
  void note_oom(AllocParams& params, bool rejected);

  DeviceState state_;
  std::vector<PoolUnderway> underway_;
  OutOfMemory oom_;
  uint32_t next_serial_ = 0;
  bool rejected_ = false;
  static constexpr size_t k_min_pending_limit = 64;
  size_t pending_limit_ = k_min_pending_limit;
};

}  // namespace cufit::memory
