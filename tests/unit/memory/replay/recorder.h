// SPDX-License-Identifier: Apache-2.0
// A random program run through the model, with what PyTorch would record of it.
#pragma once

#include <random>
#include <vector>

#include "memory/replay/replay.h"

namespace cufit::memory {

class Recorder {
 public:
  Recorder(const char* settings, uint64_t limit, uint64_t seed) : random_(seed) {
    options_.allocator.settings =
        parse_allocator_settings(settings, options_.allocator.version).value();
    if (limit != 0) options_.allocator.allowed_memory_maximum = limit;
    options_.allocator.total_memory = 2048 * k_mib;
    recording_.settings = options_.allocator.settings;
  }

  Recording record(int steps, bool empties = true) {
    SyntheticMemory memory(0, order);
    CachingAllocator allocator(options_.allocator, memory, &log_);
    std::vector<BlockHandle> live, waiting;
    for (int i = 0; i < steps; ++i) {
      const uint64_t dice = random_() % 100;
      if (dice < 50) {
        allocate(allocator, live);
      } else if (dice < 97 && !live.empty()) {
        std::swap(live[random_() % live.size()], live.back());
        free(allocator, live, waiting, dice < 55);
      } else if (dice == 97 && empties) {
        allocator.empty_cache();
        take_log();
      } else if (!waiting.empty()) {
        allocator.free_completed(waiting.front());
        note(Action::free_completed, allocator.block(waiting.front()));
        waiting.erase(waiting.begin());
      }
    }
    stats = allocator.stats();
    recording_.final_segments = allocator.segments();
    return recording_;
  }

  const ReplayOptions& options() const { return options_; }
  SyntheticMemory::Order order = SyntheticMemory::Order::driver;
  DeviceStats stats;

 private:
  void note(Action action, const PoolBlock& block) {
    recording_.events.push_back({block.ptr, block.requested_size, 0, 0, action});
  }

  void take_log() {
    for (const SegmentEvent& event : log_) {
      const auto action = static_cast<Action>(static_cast<int>(event.action) +
                                              static_cast<int>(Action::segment_alloc));
      recording_.events.push_back({event.address, event.size, event.stream, 0, action});
    }
    log_.clear();
  }

  void allocate(CachingAllocator& allocator, std::vector<BlockHandle>& live) {
    const uint64_t size = (uint64_t{1} << (random_() % 27)) + random_() % 5000;
    const BlockHandle handle = allocator.malloc(size);
    take_log();
    if (handle) {
      live.push_back(handle);
      note(Action::alloc, allocator.block(handle));
    } else {
      recording_.events.push_back({0, allocator.last_oom().rounded, 0, 0, Action::oom});
    }
  }

  // Frees that wait are kept from the release steps of a limited run, whose order of completion no
  // recording shows.
  void free(CachingAllocator& allocator, std::vector<BlockHandle>& live,
            std::vector<BlockHandle>& waiting, bool wait) {
    const BlockHandle handle = live.back();
    live.pop_back();
    note(Action::free_requested, allocator.block(handle));
    if (wait && !options_.allocator.allowed_memory_maximum && waiting_allowed_) {
      allocator.free_requested(handle);
      waiting.push_back(handle);
      return;
    }
    note(Action::free_completed, allocator.block(handle));
    allocator.free(handle);
  }

  std::mt19937_64 random_;
  ReplayOptions options_;
  Recording recording_;
  std::vector<SegmentEvent> log_;
  bool waiting_allowed_ = false;
};

}  // namespace cufit::memory
