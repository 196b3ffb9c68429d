// SPDX-License-Identifier: Apache-2.0
// A recorded run again: under its own settings with every segment event compared (verify), or under
// other settings, limits and capacities (replay). Exact as far as DeviceCachingAllocator is
// modelled; what is not, is named in ReplayResult::replay_limitations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "memory/allocator/caching_allocator.h"
#include "memory/replay/replay_program.h"

namespace cufit::memory {

struct ReplayOptions {
  AllocatorOptions allocator;
  uint64_t capacity = 0;  // bytes that cudaMalloc can give in all; 0: no bound
  SyntheticMemory::Order order = SyntheticMemory::Order::driver;
  // A program that runs out of memory ends, unless it is known to catch it.
  bool stop_at_oom = true;
  // Whether ReplayResult::replay_limitations is wanted; to find it may take three runs more.
  bool with_reasons = true;
  unsigned processors = std::thread::hardware_concurrency();  // for those runs
  // Reasons (replay_limitations.h) that are known beforehand.
  std::vector<std::string> known_reasons;
  // Allocations, by number, that the program is without; for replay() only.
  const std::vector<bool>* left_out = nullptr;
  // What private pools were asked for is asked of the default pool, on the stream that asks it most:
  // a program without CUDA graphs. For replay() only.
  bool without_pools = false;

  bool is_bounded() const {
    return capacity != 0 || allocator.allowed_memory_maximum ||
           allocator.settings.per_process_memory_fraction;
  }
};

struct ReplayResult {
  DeviceStats stats;
  std::optional<OutOfMemory> oom;      // the first; `event` counts Recording::events
  bool survived_recorded_oom = false;  // what comes after it is the end of the recorded run
  // The first workspace of a convolution that could not be had. cuDNN then takes another algorithm;
  // the replay goes on as if that one needed no workspace.
  std::optional<OutOfMemory> workspace_refused;
  // A request that a library did without in the recorded run was served here; what the library
  // would then have done is not recorded.
  bool served_caught_failure = false;
  std::vector<std::string> replay_limitations;  // ids, replay_limitations.h
};

// Runs again, with other addresses or times of events, where the result may depend on them.
ReplayResult replay(const Program& program, const ReplayOptions& options,
                    std::vector<SegmentEvent>* log = nullptr);

struct Verification {
  ReplayResult result;
  size_t segment_events = 0, segment_events_matched = 0;
  size_t allocations = 0, addresses_matched = 0;
  // The event at which model and recording part for the first time.
  std::optional<uint32_t> first_difference;
  // The least that the run could not have, although its request was served after cached memory had
  // been given back: reserved bytes with the segment that was asked for.
  std::optional<uint64_t> refused;
  // No call of the driver failed and nothing was done that the program does not name: whoever
  // replays the program with these settings and without a limit does this very run.
  bool is_plain = false;
  bool exact() const { return !first_difference; }
};

// Feeds the recorded segment addresses and failures back; `capacity`, `order` and the settings'
// memory fraction are not used, a limit as bytes only where garbage is collected below it.
// `block_bytes`, if given, receives what each allocation really took, by its number; 0 where
// the model put it elsewhere.
Verification verify(const Program& program, const ReplayOptions& recorded,
                    std::vector<uint64_t>* block_bytes = nullptr);

}  // namespace cufit::memory
