// SPDX-License-Identifier: Apache-2.0
#include "fit/replayed_steps.h"

#include <algorithm>
#include <map>

#include "formats/model/trace_events.h"

namespace cufit::fit {
namespace {

using memory::BlockHandle;
using memory::CachingAllocator;

memory::AllocatorOptions options_of(const Setup& setup) {
  memory::AllocatorOptions out;
  out.settings = setup.settings;
  out.version = setup.version;
  out.total_memory = setup.total_memory;
  return out;
}

class Run {
 public:
  Run(const Requests& requests, const Setup& setup, Estimate values,
      memory::SyntheticMemory::Order order, std::vector<MemoryAt>* series)
      : program_(requests.program),
        requests_(requests),
        values_(values),
        memory_(setup.capacity, order),
        allocator_(options_of(setup), memory_),
        stream_(allocator_.stream(0)),
        blocks_(requests.program.storages.size()),
        next_(requests.workspaces.begin()),
        series_(series) {
    if (values == Estimate::point) out_.block_bytes.resize(blocks_.size());
  }

  ReplayedSteps run() {
    for (uint32_t i = 0; i < program_.events.size(); ++i) {
      most_ = 0;
      if (!step(program_.events[i], i) || !workspaces_after(i)) break;
      if (series_ == nullptr) continue;
      const memory::DeviceStats& stats = allocator_.stats();
      series_->push_back(
          {std::max(most_, stats.allocated_bytes.current), stats.reserved_bytes.current});
    }
    out_.peak_allocated = peak_;
    out_.peak_reserved = allocator_.stats().reserved_bytes.peak;
    out_.retries = allocator_.stats().num_alloc_retries;
    return std::move(out_);
  }

 private:
  uint64_t value(uint64_t point, uint64_t upper) const {
    return values_ == Estimate::point ? point : upper;
  }

  // False: out of memory.
  bool step(const StepEvent& event, uint32_t number) {
    switch (event.kind) {
      case StepEventKind::alloc:
        return make(event, number);
      case StepEventKind::free:
        free(event.index);
        return true;
      case StepEventKind::call:
        called(program_.calls[event.index]);
        return true;
      case StepEventKind::mark:
        return true;
    }
    return true;
  }

  void free(uint32_t storage) {
    const BlockHandle block = blocks_[storage];
    if (block && storage == waits_)
      allocator_.free_requested(block);
    else if (block)
      allocator_.free(block);
    waits_ = k_none;
  }

  // The storage that a number of a call names; k_none: it names none.
  uint32_t storage_of(uint32_t number) const {
    const uint64_t distance = requests_.sizes[number].point;
    return distance < made_ ? static_cast<uint32_t>(made_ - 1 - distance) : k_none;
  }

  void events_done(const StepCall& call) {
    for (uint32_t i = 0; i < call.count; ++i) {
      const uint32_t storage = storage_of(program_.call_numbers[call.first + i]);
      if (storage != k_none && blocks_[storage]) allocator_.free_completed(blocks_[storage]);
    }
  }

  void called(const StepCall& call) {
    const std::string_view op = program_.text(program_.sites[call.site].op);
    if (op == k_waits_for_event && call.count == 1)
      waits_ = storage_of(program_.call_numbers[call.first]);
    if (op == k_events_done) events_done(call);
    // Behind a validation, where what it collected is gone (steps/growth.py of the tracer).
    if (op == "collected_gone") drop_collected();
    if (op == k_graph_pool_released && call.count == 1)
      release_graph_pool(requests_.sizes[program_.call_numbers[call.first]].point);
    if (op == k_empty_cache) allocator_.empty_cache();
  }

  bool make(const StepEvent& event, uint32_t number) {
    ++made_;
    const SizeAt& size = requests_.sizes[event.size];
    const uint64_t bytes = value(size.point, size.upper);
    if (bytes == 0) return true;  // PyTorch asks for nothing
    const BlockHandle block = block_on(program_.sites[event.site].stream, bytes);
    if (!block) return out_of_memory(number);
    blocks_[event.index] = block;
    if (values_ == Estimate::point) out_.block_bytes[event.index] = allocator_.block(block).size;
    note_peak(number);
    return true;
  }

  // Each stream has blocks of its own; what is freed on one is not taken by another. A CUDA graph
  // keeps its pool, which nothing empties before it is released.
  BlockHandle block_on(uint8_t stream, uint64_t bytes) {
    if (stream == 0) return allocator_.malloc(bytes, stream_);
    if (stream < formats::k_first_graph_pool)
      return allocator_.malloc(bytes, allocator_.stream(stream));
    const auto [pool, is_new] = graph_pools_.try_emplace(stream, 0);
    if (is_new) {
      pool->second = allocator_.create_pool({});
      allocator_.retain_pool(pool->second);
    }
    return allocator_.malloc_in_pool(bytes, allocator_.stream(stream), pool->second);
  }

  // What still lives in it lives on. The next of this number is another pool.
  void release_graph_pool(uint64_t stream) {
    const auto pool = graph_pools_.find(stream);
    if (pool == graph_pools_.end()) return;
    allocator_.release_pool(pool->second);
    graph_pools_.erase(pool);
  }

  bool workspaces_after(uint32_t number) {
    if (held_ && number >= held_until_) drop_held();
    for (; next_ != requests_.workspaces.end() && next_->event <= number; ++next_) {
      const uint64_t bytes = value(next_->point, next_->upper);
      if (bytes == 0) continue;
      const BlockHandle block = block_on(next_->stream, bytes);
      // A convolution that gets no workspace takes another algorithm.
      if (!block && !next_->kept && !next_->by_program) continue;
      if (!block) return out_of_memory(number);
      const uint64_t taken = allocator_.block(block).size;
      (next_->by_program ? by_program_ : workspaces_) += taken;
      note_peak(number);
      if (next_->replaces) replace_joined(block, taken);
      if (next_->by_program && next_->kept) collected_.push_back({block, taken});
      if (next_->kept || next_->replaces) continue;
      if (next_->until > number) {
        if (held_) drop_held();
        held_ = block;
        held_bytes_ = taken;
        held_until_ = next_->until;
        continue;
      }
      allocator_.free(block);
      workspaces_ -= taken;
      if (next_->empties_cache) allocator_.empty_cache();
    }
    return true;
  }

  void replace_joined(BlockHandle block, uint64_t bytes) {
    if (joined_) allocator_.free(joined_);
    by_program_ -= joined_bytes_;
    joined_ = block;
    joined_bytes_ = bytes;
  }

  void drop_collected() {
    for (const auto& [block, bytes] : collected_) {
      allocator_.free(block);
      by_program_ -= bytes;
    }
    collected_.clear();
    if (joined_) replace_joined({}, 0);
  }

  void drop_held() {
    allocator_.free(held_);
    workspaces_ -= held_bytes_;
    held_ = {};
  }

  void note_peak(uint32_t number) {
    const memory::DeviceStats& stats = allocator_.stats();
    most_ = std::max(most_, stats.allocated_bytes.current);
    if (stats.allocated_bytes.current <= peak_) return;
    peak_ = stats.allocated_bytes.current;
    out_.peak_event = number;
    out_.peak_event_reserved = stats.reserved_bytes.current;
    out_.peak_workspaces = workspaces_;
    out_.peak_by_program = by_program_;
  }

  bool out_of_memory(uint32_t number) {
    out_.oom = allocator_.last_oom();
    out_.oom->event = number;
    return false;
  }

  const StepProgram& program_;
  const Requests& requests_;
  const Estimate values_;
  memory::SyntheticMemory memory_;
  CachingAllocator allocator_;
  const memory::StreamIndex stream_;
  std::vector<BlockHandle> blocks_;          // by storage
  std::map<uint64_t, uint32_t> graph_pools_;  // by the stream of their sites
  static constexpr uint32_t k_none = UINT32_MAX;
  uint32_t made_ = 0;        // storages so far
  uint32_t waits_ = k_none;  // the storage whose free comes next and waits
  std::vector<Workspace>::const_iterator next_;
  BlockHandle held_;  // of a library, while it makes what it keeps
  uint64_t held_bytes_ = 0;
  uint32_t held_until_ = 0;
  std::vector<std::pair<BlockHandle, uint64_t>> collected_;  // and their bytes
  BlockHandle joined_;
  uint64_t joined_bytes_ = 0;
  uint64_t workspaces_ = 0, by_program_ = 0;
  uint64_t peak_ = 0;
  uint64_t most_ = 0;  // allocated, since the event under way began
  std::vector<MemoryAt>* series_;
  ReplayedSteps out_;
};

}  // namespace

ReplayedSteps replay_steps(const Requests& requests, const Setup& setup, Estimate values,
                           memory::SyntheticMemory::Order order, std::vector<MemoryAt>* series) {
  return Run(requests, setup, values, order, series).run();
}

}  // namespace cufit::fit
