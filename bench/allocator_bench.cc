// SPDX-License-Identifier: Apache-2.0
// Requests per second of the allocator model. A trace event is one row of a recording: an alloc is
// one, a free is two (free_requested, free_completed). The target is 10 million a second on one
// core.
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <vector>

#include "memory/allocator/caching_allocator.h"

namespace {

using namespace cufit::memory;

struct Request {
  uint32_t id;
  uint64_t size;  // 0: free
};

// Training steps of `tensors` allocations: half live to the end of the step, the others for a few
// requests; sizes between 512 bytes and 64 MiB, of which each step repeats most.
std::vector<Request> training(uint32_t steps, uint32_t tensors) {
  std::mt19937_64 random(3);
  std::vector<uint64_t> sizes(tensors);
  for (uint64_t& size : sizes)
    size = static_cast<uint64_t>(std::exp2(9 + static_cast<double>(random() % 1700) / 100.0));
  std::vector<Request> requests;
  uint32_t next = 0;
  for (uint32_t step = 0; step < steps; ++step) {
    std::vector<uint32_t> kept, brief;
    for (uint32_t i = 0; i < tensors; ++i) {
      const bool other = random() % 8 == 0;  // a size that varies from step to step
      requests.push_back({next, other ? sizes[i] + 512 * (random() % 4096) : sizes[i]});
      (random() % 2 == 0 ? kept : brief).push_back(next++);
      if (brief.size() > 6) {
        const size_t victim = random() % brief.size();
        requests.push_back({brief[victim], 0});
        brief.erase(brief.begin() + static_cast<std::ptrdiff_t>(victim));
      }
    }
    for (const uint32_t id : brief) requests.push_back({id, 0});
    for (size_t i = kept.size(); i-- > 0;) requests.push_back({kept[i], 0});
  }
  return requests;
}

void replay(benchmark::State& state, const char* settings) {
  const std::vector<Request> requests = training(20, static_cast<uint32_t>(state.range(0)));
  AllocatorOptions options;
  options.settings = parse_allocator_settings(settings, options.version).value();
  std::vector<BlockHandle> live(requests.size());
  uint64_t events = 0;
  for (auto _ : state) {
    SyntheticMemory memory;
    CachingAllocator allocator(options, memory);
    for (const Request& request : requests) {
      if (request.size != 0) {
        live[request.id] = allocator.malloc(request.size);
        events += 1;
      } else {
        allocator.free_requested(live[request.id]);
        allocator.free_completed(live[request.id]);
        events += 2;
      }
    }
    benchmark::DoNotOptimize(allocator.stats().reserved_bytes.peak);
  }
  state.counters["events"] =
      benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(replay, default_settings, "")->Arg(1000)->Arg(20000);
BENCHMARK_CAPTURE(replay, expandable, "expandable_segments:True")->Arg(1000)->Arg(20000);
BENCHMARK_CAPTURE(replay, max_split, "max_split_size_mb:128")->Arg(1000);

}  // namespace
