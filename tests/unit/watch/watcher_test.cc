// SPDX-License-Identifier: Apache-2.0
#include "watch/watcher.h"

#include <gtest/gtest.h>

#include "watch/demo.h"

namespace cufit::watch {
namespace watcher_test {

using facts::GpuSample;

constexpr uint64_t k_gib = uint64_t{1} << 30;

GpuSample sample(double time, uint64_t used, std::vector<uint64_t> of_processes) {
  GpuSample out;
  out.time = time;
  facts::SampledGpu gpu;
  gpu.uuid = "GPU-1";
  gpu.memory_total_bytes = 80 * k_gib;
  gpu.memory_used_bytes = used;
  gpu.memory_free_bytes = 80 * k_gib - used;
  out.gpus.push_back(gpu);
  uint32_t pid = 100;
  for (const uint64_t bytes : of_processes) {
    facts::SampledProcess process;
    process.pid = pid++;
    process.memory_bytes = bytes;
    process.owner.started = 5;
    out.processes.push_back(process);
  }
  return out;
}

std::optional<uint64_t> unowned_of(const GpuSample& one) {
  Watcher watcher;
  watcher.add(one);
  return watcher.now().gpus.at(0).unowned_bytes;
}

TEST(Watcher, ALogThatMayNotBeReadIsNoFaultOfNvml) {
  EXPECT_EQ(nvml_problem({{"xids before now", "Operation not permitted"}}), nullptr);
  const std::vector<facts::MissingValue> gone = {{"xids before now", "Operation not permitted"},
                                                 {"NVML", "Driver/library version mismatch (18)"}};
  ASSERT_NE(nvml_problem(gone), nullptr);
  EXPECT_EQ(nvml_problem(gone)->why, "Driver/library version mismatch (18)");
}

TEST(Watcher, WhatNobodyOwns) {
  EXPECT_EQ(unowned_of(sample(1, 10 * k_gib, {4 * k_gib, 5 * k_gib})), k_gib);
  // Processes that share memory are counted twice by the driver.
  EXPECT_EQ(unowned_of(sample(1, 10 * k_gib, {8 * k_gib, 5 * k_gib})), 0u);
  EXPECT_EQ(unowned_of(sample(1, 10 * k_gib, {UINT64_MAX, 5})), 0u);
  GpuSample silent = sample(1, 10 * k_gib, {4 * k_gib});
  silent.processes[0].memory_bytes.reset();
  EXPECT_FALSE(unowned_of(silent));
  silent = sample(1, 10 * k_gib, {});
  silent.missing.push_back({"gpu 0: processes", "Not Supported (3)"});
  EXPECT_FALSE(unowned_of(silent));
  // Of a divided GPU its instances' rows tell it.
  GpuSample divided = sample(1, 10 * k_gib, {});
  facts::SampledGpu instance;
  instance.uuid = "MIG-1";
  instance.parent_uuid = "GPU-1";
  instance.profile = "1g.10gb";
  instance.memory_used_bytes = 3 * k_gib;
  divided.gpus.push_back(instance);
  Watcher watcher;
  watcher.add(divided);
  EXPECT_FALSE(watcher.now().gpus[0].unowned_bytes);
  EXPECT_EQ(watcher.now().gpus[1].unowned_bytes, 3 * k_gib);
}

TEST(Watcher, TheLargestFirstAndWhatIsStaleStays) {
  Watcher watcher;
  watcher.add(sample(1, 10 * k_gib, {1, 3, 2}));
  std::vector<uint64_t> sizes;
  for (const WatchedProcess& process : watcher.now().processes)
    sizes.push_back(*process.now.memory_bytes);
  EXPECT_EQ(sizes, (std::vector<uint64_t>{3, 2, 1}));
  GpuSample stale = sample(1, 0, {});
  stale.stalled_seconds = 9;
  watcher.add(stale);
  EXPECT_EQ(watcher.now().processes.size(), 3u);
  EXPECT_EQ(watcher.now().stalled_seconds, 9.0);
  watcher.add(sample(2, 0, {}));
  EXPECT_FALSE(watcher.now().stalled_seconds);
  EXPECT_TRUE(watcher.now().processes.empty());
}

// A machine that starts with a wrong clock: for as long as it was ahead, old values would be shown as new ones.
TEST(Watcher, TheClockIsSetBack) {
  Watcher watcher;
  GpuSample one = sample(5000, 10 * k_gib, {4 * k_gib});
  one.gpus[0].throttle = {"hw_slowdown"};
  watcher.add(one);
  one.time = 4990;  // jitter of who samples
  one.gpus[0].memory_used_bytes = 11 * k_gib;
  watcher.add(one);
  EXPECT_EQ(watcher.now().gpus[0].now.memory_used_bytes, 10 * k_gib);
  one.time = 1400;
  watcher.add(one);
  EXPECT_EQ(watcher.now().time, 1400);
  EXPECT_EQ(watcher.now().gpus[0].now.memory_used_bytes, 11 * k_gib);
  // Nothing is known of what passed, and a counter does not fall.
  EXPECT_EQ(watcher.now().gpus[0].throttle_seconds->at("hw_slowdown"), 0);
  one.time = 1410;
  watcher.add(one);
  EXPECT_EQ(watcher.now().gpus[0].throttle_seconds->at("hw_slowdown"), 10);
}

TEST(Watcher, AHistoryHasAnEnd) {
  Watcher watcher;
  for (int i = 0; i < 500; ++i) watcher.add(sample(i, i % 2 == 0 ? 0 : 40 * k_gib, {}));
  const GpuHistory& history = watcher.now().gpus[0].history;
  ASSERT_EQ(history.memory.size(), GpuHistory::k_most);
  EXPECT_FLOAT_EQ(history.memory.back(), 0.5f);
  EXPECT_FLOAT_EQ(history.utilization.back(), -1.0f);
}

// A pid that is given to another process begins anew; one that is not listed for a moment does not.
TEST(Watcher, GrowthIsOfOneProcess) {
  const auto state_after = [](bool another, bool gap) {
    Watcher watcher;
    for (int i = 0; i < 240; ++i) {
      const double time = 1000 + 10.0 * i;
      const uint64_t bytes = 10 * k_gib + static_cast<uint64_t>(i) * (k_gib / 8);
      GpuSample one = sample(time, bytes, {bytes});
      if (another && i >= 238) one.processes[0].owner.started = 900;
      if (gap && (i == 100 || i == 200)) one.processes.clear();
      watcher.add(one);
    }
    return watcher.now().processes.at(0).trend.state;
  };
  EXPECT_EQ(state_after(false, false), MemoryTrend::State::growing);
  EXPECT_EQ(state_after(false, true), MemoryTrend::State::growing);
  EXPECT_EQ(state_after(true, false), MemoryTrend::State::too_short);
}

TEST(Watcher, TheDemoHasOneLeak) {
  Watcher watcher;
  const std::vector<GpuSample> samples = demo_samples(2e9);
  for (const GpuSample& one : samples) watcher.add(one);
  EXPECT_EQ(watcher.now().time, 2e9);
  size_t growing = 0;
  for (const WatchedProcess& process : watcher.now().processes) {
    if (process.trend.state != MemoryTrend::State::growing) continue;
    ++growing;
    EXPECT_EQ(process.now.owner.user, "li");
    // 118 MiB a minute, as it was made.
    EXPECT_NEAR(*process.trend.slope_bytes_per_s, 118.0 * (1 << 20) / 60, 1e5);
    const double truth = static_cast<double>(*watcher.now().gpus[2].now.memory_free_bytes) /
                         (118.0 * (1 << 20) / 60);
    EXPECT_LE(*process.trend.full_in_s_early, truth);
    EXPECT_GE(*process.trend.full_in_s_late, truth);
  }
  EXPECT_EQ(growing, 1u);
}

}  // namespace watcher_test
}  // namespace cufit::watch
