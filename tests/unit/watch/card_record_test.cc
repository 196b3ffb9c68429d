// SPDX-License-Identifier: Apache-2.0
#include "watch/card_record.h"

#include <gtest/gtest.h>

namespace cufit::watch {
namespace card_record_test {

facts::SampledProcess process(uint32_t pid, uint64_t bytes, bool visible) {
  facts::SampledProcess out;
  out.pid = pid;
  out.memory_bytes = bytes;
  out.owner.visible = visible;
  return out;
}

// A card of 100 W at a second of 1000 + t.
facts::GpuSample sample(double t, uint32_t clock,
                        std::vector<facts::SampledProcess> processes = {}) {
  facts::GpuSample out;
  out.time = 1000 + t;
  facts::SampledGpu other, gpu;
  other.uuid = "GPU-aa";
  gpu.uuid = "GPU-bb";
  gpu.energy_joules = 5e6 + 100 * t;
  gpu.sm_clock_mhz = clock;
  out.gpus = {other, gpu};
  for (facts::SampledProcess& one : processes) one.gpu = 1;
  out.processes = std::move(processes);
  return out;
}

TEST(CardRecord, EnergyIsThatOfTheSpansAlone) {
  CardRecord record("bb");
  for (int i = 0; i <= 20; ++i) record.add(sample(i * 0.5, 1500 + static_cast<uint32_t>(i)));
  const CardLoad load = record.load_in({{1001.2, 1002.3}, {1005.1, 1006.1}});
  ASSERT_TRUE(load.joules);
  EXPECT_NEAR(*load.joules, 210, 1e-6);
  EXPECT_EQ(load.sm_clock_min_mhz, 1503u);
  EXPECT_EQ(load.sm_clock_max_mhz, 1512u);
}

TEST(CardRecord, EnergyThatWasNotReadAroundASpanIsNotKnown) {
  CardRecord record("GPU-BB");
  for (int i = 4; i <= 8; ++i) record.add(sample(i, 1500));
  EXPECT_FALSE(record.load_in({{1003, 1005}}).joules);
  EXPECT_FALSE(record.load_in({{1005, 1009}}).joules);
  EXPECT_FALSE(record.load_in({}).joules);
  EXPECT_TRUE(record.load_in({{1004, 1008}}).joules);
}

TEST(CardRecord, ReasonsThatCostNothingAreNotNamed) {
  CardRecord record("bb");
  facts::GpuSample one = sample(1, 1500);
  one.gpus[1].throttle = {"applications_clocks_setting", "sw_power_cap"};
  record.add(one);
  EXPECT_EQ(record.load_in({{1000, 1002}}).throttle, std::vector<std::string>{"sw_power_cap"});
  EXPECT_TRUE(record.load_in({{1002, 1003}}).throttle.empty());
}

TEST(CardRecord, NeighboursAreNeitherOwnNorPossiblyOwn) {
  CardRecord record("bb");
  record.add(sample(0, 1500, {process(7, 100, false)}));  // of another namespace, but there before
  record.own(20);
  record.add(sample(1, 1500,
                    {process(7, 100, false), process(20, 50, true), process(31, 60, true),
                     process(9000, 50, false)}));  // may be 20 as the host counts
  record.add(sample(2, 1500, {process(20, 80, true)}));
  const std::vector<facts::SampledProcess> others = record.neighbours();
  ASSERT_EQ(others.size(), 2u);
  EXPECT_EQ(others[0].pid, 7u);
  EXPECT_EQ(others[1].pid, 31u);
  EXPECT_EQ(record.process_bytes(20), 80u);
  EXPECT_FALSE(record.process_bytes(21));
}

TEST(CardRecord, AnotherGpuIsNotLookedAt) {
  CardRecord record("cc");
  record.add(sample(0, 1500, {process(7, 100, true)}));
  EXPECT_FALSE(record.found());
  EXPECT_TRUE(record.neighbours().empty());
}

}  // namespace card_record_test
}  // namespace cufit::watch
