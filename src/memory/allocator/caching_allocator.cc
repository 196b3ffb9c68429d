// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/caching_allocator.h"

#include <algorithm>

#include "base/result.h"
#include "memory/allocator/best_fit.h"
#include "memory/allocator/expandable_segment.h"
#include "memory/allocator/garbage_collection.h"
#include "memory/allocator/release.h"
#include "memory/allocator/split.h"

namespace cufit::memory {

std::optional<uint64_t> allowed_memory(const AllocatorOptions& options) {
  if (options.allowed_memory_maximum) return options.allowed_memory_maximum;
  const std::optional<double> fraction = options.settings.per_process_memory_fraction;
  if (!fraction || (*fraction >= 1 && options.version.fraction_one_is_no_limit))
    return std::nullopt;
  return static_cast<uint64_t>(*fraction * static_cast<double>(options.total_memory));
}

CachingAllocator::CachingAllocator(const AllocatorOptions& options, DeviceMemory& memory,
                                   std::vector<SegmentEvent>* log) {
  state_.settings = options.settings;
  state_.version = options.version;
  state_.memory = &memory;
  state_.total_memory = options.total_memory;
  state_.allowed_memory_maximum = allowed_memory(options);
  state_.log = log;
  state_.streams.find_or_add(0);  // the default stream
  create_pool({});
}

AllocParams CachingAllocator::params_for(uint64_t requested, StreamIndex stream, uint32_t pool) {
  AllocParams params;
  params.requested = requested;
  params.size = round_size(requested, state_.settings.roundup_power2_divisions);
  params.alloc_size = get_allocation_size(params.size, state_.settings.large_segment_size);
  params.stream = stream;
  params.pool = &state_.pools[pool]->for_size(is_small_size(params.size));
  params.expandable_active = state_.uses_expandable(*params.pool);
  return params;
}

BlockHandle CachingAllocator::malloc(uint64_t size, StreamIndex stream) {
  return malloc_in_pool(size, stream, underway_.empty() ? 0 : pool_for(stream));
}

BlockHandle CachingAllocator::malloc_in_pool(uint64_t size, StreamIndex stream, uint32_t pool) {
  rejected_ = false;
  if (size >= k_one_exa_bytes) {
    AllocParams params;
    params.requested = params.size = params.alloc_size = size;
    params.stream = stream;
    params.pool = &state_.pools[pool]->large_blocks;
    note_oom(params, true);
    return {};
  }
  AllocParams params = params_for(size, stream, pool);
  if (!get_free_block(params) && !find_or_make_block(params)) {
    note_oom(params, rejected_);
    return {};
  }
  return alloc_found_block(params);
}

bool CachingAllocator::would_release_first(uint64_t address, uint64_t size, StreamIndex stream,
                                           uint32_t pool) {
  if (size >= k_one_exa_bytes) return false;
  const AllocParams params = params_for(size, stream, pool);
  if (!params.pool->free_blocks(stream).at_end(best_fit(state_, params))) return false;
  if (state_.collects_garbage()) return true;  // it may take any segment
  const AvailableBlocks available = available_cached_blocks(state_, params);
  // Otherwise everything goes, in the same order as by empty_cache.
  return available.blocks.empty() || state_.blocks[available.blocks.front()].ptr == address;
}

bool CachingAllocator::get_free_block(AllocParams& params) {
  if (state_.collects_garbage()) ++params.pool->get_free_blocks_call_count;
  const FreeBlocks::Position found = best_fit(state_, params);
  const FreeBlocks& blocks = params.pool->blocks[params.stream];
  if (blocks.at_end(found)) return false;
  params.is_from_pool = true;
  params.place = found;
  params.block = blocks.at(found);
  return true;
}

// What malloc does after a miss; the order is the point.
bool CachingAllocator::find_or_make_block(AllocParams& params) {
  if (state_.collects_garbage()) garbage_collect_cached_blocks(state_);
  if (alloc_block(params, false)) return true;
  if (rejected_) return false;
  if (state_.version.mempool_fallback_first && try_mempool_fallback(params)) return true;
  if (release_available_cached_blocks(state_, params) && alloc_block(params, false)) return true;
  if (may_release()) {
    release_cached_blocks(state_);
    // The pool is not searched again, although pending frees may have filled it
    // (pytorch/pytorch#189504).
    if (alloc_block(params, true)) return true;
  }
  return !state_.version.mempool_fallback_first && try_mempool_fallback(params);
}

bool CachingAllocator::exceeds_limit(const AllocParams& params) const {
  return state_.allowed_memory_maximum &&
         state_.stats.reserved_bytes.current + params.alloc_size > *state_.allowed_memory_maximum;
}

bool CachingAllocator::alloc_block(AllocParams& params, bool is_retry) {
  if (is_retry) ++state_.stats.num_alloc_retries;
  if (exceeds_limit(params)) {
    rejected_ = state_.settings.throw_on_cudamalloc_oom;
    return false;
  }
  if (params.expandable_active) {
    params.block = try_allocate_expandable_block(state_, params);
    return params.block != k_none;
  }
  const std::optional<uint64_t> address = state_.memory->cuda_malloc(params.alloc_size);
  if (!address) return false;
  params.block = state_.blocks.create();
  PoolBlock& block = state_.blocks[params.block];
  block.ptr = *address;
  block.size = params.alloc_size;
  block.pool = params.pool;
  block.stream = params.stream;
  state_.stats.reserved_bytes.increase(block.size);
  state_.stats.segments.increase(1);
  ++state_.stats.cuda_mallocs;
  state_.record(SegmentAction::segment_alloc, block.ptr, block.size, block.stream);
  return true;
}

// Blocks that pools made with use_on_oom hold already.
bool CachingAllocator::try_mempool_fallback(AllocParams& params) {
  if (!state_.version.use_on_oom_pools || params.pool->owner != 0) return false;
  for (size_t i = 1; i < state_.pools.size(); ++i) {
    if (!state_.pools[i]->options.use_on_oom) continue;
    AllocParams other = params;
    other.pool = &state_.pools[i]->for_size(params.pool->is_small);
    other.expandable_active = false;
    if (!get_free_block(other)) continue;
    params = other;
    return true;
  }
  return false;
}

BlockHandle CachingAllocator::alloc_found_block(AllocParams& params) {
  BlockIndex index = params.block;
  if (should_split(state_, params)) {
    const BlockIndex rest = index;
    index = split_front(state_, rest, params.size);
    if (params.is_from_pool) {
      params.pool->replace_in_blocks(params.place, state_.blocks[rest], rest);
    } else {
      params.pool->insert_into_blocks(state_.blocks[rest], rest);
    }
  } else if (params.is_from_pool) {
    params.pool->blocks[params.stream].erase(params.place);
  }
  PoolBlock& block = state_.blocks[index];
  block.state = BlockUse::allocated;
  block.requested_size = params.requested;
  block.other_streams = false;
  block.serial = next_serial_++;
  state_.stats.allocated_bytes.increase(block.size);
  state_.stats.active_bytes.increase(block.size);
  state_.stats.requested_bytes.increase(block.requested_size);
  return {index, block.serial};
}

void CachingAllocator::note_oom(AllocParams& params, bool rejected) {
  ++state_.stats.num_ooms;
  if (rejected_) ++state_.stats.num_oom_rejections;
  oom_ = OutOfMemory();
  oom_.event = state_.event;
  oom_.requested = params.requested;
  oom_.rounded = params.size;
  oom_.tried = params.alloc_size;
  oom_.allocated = state_.stats.allocated_bytes.current;
  oom_.reserved = state_.stats.reserved_bytes.current;
  oom_.allowed = state_.allowed_memory_maximum;
  oom_.rejected = rejected;
  oom_.largest_free_in_pool = largest_free(state_, params.pool->free_blocks(params.stream));
  for (const auto& pool : state_.pools)
    for (const BlockPool* half : {&pool->small_blocks, &pool->large_blocks})
      for (const FreeBlocks& blocks : half->blocks)
        oom_.largest_free = std::max(oom_.largest_free, largest_free(state_, blocks));
  oom_.cached_block_would_do =
      params.size < k_one_exa_bytes &&
      !params.pool->free_blocks(params.stream).at_end(best_fit(state_, params));
}

void CachingAllocator::record_stream(BlockHandle handle, StreamIndex stream) {
  PoolBlock& block = state_.blocks[handle.block];
  if (stream != block.stream) block.other_streams = true;
}

void CachingAllocator::leave_program(BlockHandle handle) {
  PoolBlock& block = state_.blocks[handle.block];
  CUFIT_CHECK(block.state == BlockUse::allocated && block.serial == handle.serial,
              "a block is freed that is not allocated");
  block.state = BlockUse::pending_free;
  state_.stats.allocated_bytes.decrease(block.size);
  state_.stats.requested_bytes.decrease(block.requested_size);
}

void CachingAllocator::free(BlockHandle handle) {
  leave_program(handle);
  if (state_.blocks[handle.block].other_streams) {
    state_.pending.push_back(handle);
  } else {
    free_block(state_, handle.block);
  }
}

void CachingAllocator::free_requested(BlockHandle handle) {
  leave_program(handle);
  state_.pending.push_back(handle);
}

void CachingAllocator::free_completed(BlockHandle handle) {
  std::vector<BlockHandle>& pending = state_.pending;
  if (!is_pending(state_, handle)) return;
  free_block(state_, handle.block);
  // Nearly always the last one, since most frees wait for nothing. Others stay in the list, where
  // their state tells that they are done, until they are half of it.
  if (pending.back().block == handle.block) {
    pending.pop_back();
  } else if (pending.size() >= pending_limit_) {
    const auto done = [&](const BlockHandle& other) { return !is_pending(state_, other); };
    pending.erase(std::remove_if(pending.begin(), pending.end(), done), pending.end());
    pending_limit_ = std::max(k_min_pending_limit, 2 * pending.size());
  }
}

void CachingAllocator::empty_cache_of(uint32_t private_pool) {
  release_cached_blocks(state_, private_pool);
}

}  // namespace cufit::memory
