// SPDX-License-Identifier: Apache-2.0
// Recorded runs of an H200 and two H100, replayed as samples: what the allocator held, some events a second. None of them
// leaks. The recordings lie beside a checkout and not in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/bytes.h"
#include "memory/replay/verified_recording.h"
#include "support/places.h"
#include "unit/watch/foresight_judge.h"

namespace cufit::test {
namespace {

// Bytes held after each event.
std::vector<uint64_t> held_in(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return {};
  std::ostringstream bytes;
  bytes << in.rdbuf();
  const Result<memory::Snapshot> snapshot =
      memory::read_snapshot(std::make_shared<MemorySource>(path, bytes.str()));
  EXPECT_TRUE(snapshot) << path;
  const Result<memory::VerifiedRecording> verified =
      memory::verify_recording(*snapshot, memory::busiest_device(*snapshot), std::nullopt);
  EXPECT_TRUE(verified) << path;
  std::vector<uint64_t> held;
  uint64_t now = 0;
  for (const memory::RecordedEvent event : verified->recording.events) {
    using memory::Action;
    if (event.action == Action::segment_alloc || event.action == Action::segment_map)
      now += event.size;
    if (event.action == Action::segment_free || event.action == Action::segment_unmap)
      now -= event.size;
    held.push_back(now);
  }
  return held;
}

// As long again it holds what it held in the end.
MemoryRun replayed(const std::vector<uint64_t>& held, double seconds, double every, uint64_t card) {
  MemoryRun run;
  run.card_bytes = card;
  for (double time = 0; time < 2 * seconds; time += every) {
    const size_t event = static_cast<size_t>(time / seconds * static_cast<double>(held.size()));
    run.samples.push_back({time, held[std::min(event, held.size() - 1)] + 518 * k_mib, 0});
  }
  return run;
}

TEST(RecordedRuns, NoneIsNamed) {
  size_t runs = 0;
  for (const char* name : {"trace-gpt2-stacks", "trace-resnet", "trace-varlen", "oom-varlen",
                           "dist-fsdp2-L1-rank0", "dist-fsdp2-L1-rank1"}) {
    const std::vector<uint64_t> held = held_in(source_dir() + "/../shared/gpu/" + name + ".pkl.gz");
    if (held.empty()) continue;
    const uint64_t most = *std::max_element(held.begin(), held.end()) + 518 * k_mib;
    for (const double seconds : {60.0, 600.0, 3600.0, 6 * 3600.0})
      for (const double every : {1.0, 15.0})
        for (const uint64_t card : {80 * k_gib, most + most / 10}) {
          // At less than ten events a second (a run makes thousands) weights and the first step come over minutes, at one
          // rate and up to most of the smaller card: nothing tells them from a leak then.
          if (card != 80 * k_gib && static_cast<double>(held.size()) / seconds < 10) continue;
          const Judged got = judged(replayed(held, seconds, every, card));
          ++runs;
          EXPECT_FALSE(got.named) << name << ": " << static_cast<double>(held.size()) / seconds
                                  << " events/s, a sample every " << every << " s, card of "
                                  << (card >> 30) << " GiB: named at " << got.at << " of "
                                  << seconds << " s";
        }
  }
  if (runs == 0) GTEST_SKIP() << "the shared recordings are not beside this checkout";
  if (std::getenv("CUFIT_SHOW_RUNS")) std::printf("%zu replays\n", runs);
}

}  // namespace
}  // namespace cufit::test
