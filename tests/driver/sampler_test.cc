// SPDX-License-Identifier: Apache-2.0
// The sampler with the stand-in driver: every value, those that are absent, and drivers that hang, die, lose a GPU and come
// back.
#include "host/driver/gpu_sampler.h"

#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>

#include "driver/described.h"
#include "facts/gpu_sample_json.h"

namespace cufit::host {
namespace sampler_test {

using facts::GpuSample;
using facts::SampledGpu;

const std::string k_busy =
    "utilization = 97\nutilization.memory = 41\nenergy_mj = 5250\nfan = 30\npcie_replays = 3\n"
    "clock.sm = 1980\nclock.memory = 3201\nclock_max.sm = 1995\nclock_max.memory = 3202\n"
    "slowdown_temperature = 95\nfield.74 = 7000000\nfield.75 = 8000000\nfield32.82 = 62\n"
    "field.138 = 4\nfield.139 = 5\n"
    "[process]\npid = 4242\nused = 1000000\nsm = 40\n[process]\npid = 4243\nkind = graphics\n";

// A machine whose file changes while it is sampled.
class LiveMachine {
 public:
  explicit LiveMachine(const std::string& text) : described_("live = 1\n" + text) {}
  void becomes(const std::string& text) const {
    const std::string beside = described_.path() + ".new";
    std::ofstream(beside) << "live = 1\n" << text;
    rename(beside.c_str(), described_.path().c_str());
  }
  RealHost host() const { return RealHost("/", {{"CUFIT_STANDIN", described_.path()}}); }

 private:
  test::Described described_;
};

SamplerOptions options(double interval = 0.05, double limit = 0.5) {
  return {test::binary_dir() + "/standin", interval, limit, limit};
}

// Waits until the sample is as wanted; 20 s at most.
template <class F>
bool until(GpuSampler& sampler, F wanted) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < end) {
    sampler.wait(0.1);
    if (wanted(sampler.newest())) return true;
  }
  return false;
}

bool is_fresh(const GpuSample& sample) { return !sample.gpus.empty() && !sample.stalled_seconds; }

GpuSample one_sample(const std::string& machine) {
  test::Described described(machine);
  RealHost host("/", {{"CUFIT_STANDIN", described.path()}});
  GpuSampler sampler(host, options());
  EXPECT_TRUE(until(sampler, [&](const GpuSample&) { return sampler.has_answered(); }));
  return sampler.newest();
}

TEST(Sampler, EveryValue) {
  const GpuSample sample = one_sample(test::k_system + test::h200(1, k_busy));
  EXPECT_EQ(sample.driver_version, "580.95.05");
  EXPECT_GT(sample.time, 1.7e9);
  ASSERT_EQ(sample.gpus.size(), 1u);
  const SampledGpu& gpu = sample.gpus[0];
  EXPECT_EQ(gpu.name, "NVIDIA H200");
  EXPECT_EQ(gpu.pci, "0000:01:00.0");
  EXPECT_EQ(gpu.memory_total_bytes, 67108864u);
  EXPECT_EQ(gpu.memory_used_bytes, 1048576u);
  EXPECT_EQ(gpu.memory_reserved_bytes, 2097152u);
  EXPECT_EQ(gpu.utilization, 0.97);
  EXPECT_EQ(gpu.memory_utilization, 0.41);
  EXPECT_EQ(gpu.power_watts, 121.56);
  EXPECT_EQ(gpu.power_limit_watts, 700.0);
  EXPECT_EQ(gpu.energy_joules, 5.25);
  EXPECT_EQ(gpu.temperature_c, 36);
  EXPECT_EQ(gpu.memory_temperature_c, 62);
  EXPECT_EQ(gpu.slowdown_temperature_c, 95);
  EXPECT_EQ(gpu.fan, 0.3);
  EXPECT_EQ(gpu.sm_clock_mhz, 1980u);
  EXPECT_EQ(gpu.memory_clock_mhz, 3201u);
  EXPECT_EQ(gpu.sm_clock_max_mhz, 1995u);
  EXPECT_EQ(gpu.memory_clock_max_mhz, 3202u);
  EXPECT_EQ(gpu.throttle, (std::vector<std::string>{"hw_thermal_slowdown"}));
  EXPECT_EQ(gpu.power_violation_ns, 7000000u);
  EXPECT_EQ(gpu.thermal_violation_ns, 8000000u);
  EXPECT_EQ(gpu.pcie_gen, 4u);
  EXPECT_EQ(gpu.pcie_gen_max, 5u);
  EXPECT_EQ(gpu.pcie_width, 8u);
  EXPECT_EQ(gpu.pcie_width_max, 16u);
  EXPECT_EQ(gpu.pcie_replays, 3u);
  EXPECT_EQ(gpu.nvlinks, 18u);
  EXPECT_EQ(gpu.nvlinks_active, 17u);
  EXPECT_EQ(gpu.nvlink_tx_bytes, 4096u);
  EXPECT_EQ(gpu.nvlink_rx_bytes, 5120u);
  EXPECT_EQ(gpu.ecc_corrected, 0u);
  EXPECT_EQ(gpu.ecc_uncorrected, 0u);
  EXPECT_EQ(gpu.remapped_corrected, 1u);
  EXPECT_EQ(gpu.remapped_uncorrected, 2u);
  EXPECT_EQ(gpu.remap_pending, true);
  EXPECT_EQ(gpu.remap_failed, false);
  EXPECT_EQ(gpu.compute_mode, "default");
  EXPECT_FALSE(gpu.lost);
  ASSERT_EQ(sample.processes.size(), 2u);
  EXPECT_EQ(sample.processes[0].pid, 4242u);
  EXPECT_EQ(sample.processes[0].memory_bytes, 1000000u);
  EXPECT_EQ(sample.processes[0].utilization, 0.4);
  EXPECT_EQ(sample.processes[1].kind, "graphics");
  EXPECT_FALSE(sample.processes[1].memory_bytes);
  EXPECT_FALSE(sample.processes[1].utilization);
}

TEST(Sampler, WhatACardHasNotIsAbsentAndSaid) {
  const GpuSample sample = one_sample(test::k_system + "[gpu]\nname = NVIDIA GB10\nuuid = GPU-1\n");
  ASSERT_EQ(sample.gpus.size(), 1u);
  const SampledGpu& gpu = sample.gpus[0];
  EXPECT_FALSE(gpu.memory_total_bytes || gpu.utilization || gpu.memory_utilization || gpu.fan ||
               gpu.temperature_c || gpu.power_watts || gpu.nvlinks || gpu.ecc_uncorrected ||
               gpu.pcie_replays || gpu.remap_failed || gpu.sm_clock_mhz || gpu.throttle ||
               gpu.pcie_rx_bytes_per_s || gpu.memory_temperature_c);
  const auto why = [&](const std::string& what) {
    for (const facts::MissingValue& one : sample.missing)
      if (one.what == what) return one.why;
    return std::string("not there");
  };
  EXPECT_EQ(why("gpu 0: memory_total_bytes"), "Not Supported (3)");
  EXPECT_EQ(why("gpu 0: fan"), "Not Supported (3)");
}

TEST(Sampler, AnOldLibrary) {
  test::Described described(test::k_system + test::h200());
  RealHost host("/", {{"CUFIT_STANDIN", described.path()}});
  SamplerOptions old = options();
  old.library_dir = test::binary_dir() + "/standin_old";
  GpuSampler sampler(host, old);
  ASSERT_TRUE(until(sampler, is_fresh));
  EXPECT_EQ(sampler.newest().gpus[0].memory_used_bytes, 1048576u + 2097152u);
  EXPECT_FALSE(sampler.newest().gpus[0].memory_reserved_bytes);
}

TEST(Sampler, ARateOfTwoCounters) {
  const auto machine = [](int bytes) {
    return test::k_system +
           test::h200(0, "field.197 = " + std::to_string(bytes) + "\nfield.198 = 7\n");
  };
  LiveMachine live(machine(1000));
  RealHost host = live.host();
  GpuSampler sampler(host, options());
  ASSERT_TRUE(until(sampler, [](const GpuSample& sample) {
    return is_fresh(sample) && sample.gpus[0].pcie_tx_bytes_per_s == 0u;
  }));
  live.becomes(machine(2001000));
  EXPECT_TRUE(until(sampler, [](const GpuSample& sample) {
    // 2 MB within one interval, of 50 ms or more on a busy machine.
    return sample.gpus[0].pcie_tx_bytes_per_s.value_or(0) > 1000 &&
           sample.gpus[0].pcie_rx_bytes_per_s == 0u;
  }));
}

// Of driver 580 on an H200: counters that turn over each 4 GiB say nothing, and the driver's own rate takes 20 ms.
TEST(Sampler, ARateOfTheDriverWhereCountersAreNarrow) {
  test::Described described(
      test::k_system +
      test::h200(0, "field32.197 = 1\nfield32.198 = 1\nthroughput.tx = 5\nthroughput.rx = 7\n"));
  RealHost host("/", {{"CUFIT_STANDIN", described.path()}});
  SamplerOptions wide = options();
  wide.interval_seconds = 1;
  GpuSampler sampler(host, wide);
  ASSERT_TRUE(until(sampler, is_fresh));
  EXPECT_EQ(sampler.newest().gpus[0].pcie_tx_bytes_per_s, 5u << 10);
  EXPECT_EQ(sampler.newest().gpus[0].pcie_rx_bytes_per_s, 7u << 10);
  GpuSampler narrow(host, options());
  ASSERT_TRUE(until(narrow, is_fresh));
  EXPECT_FALSE(narrow.newest().gpus[0].pcie_tx_bytes_per_s);
}

// They are not asked in each sample of a second; what was missing stays so until then.
// `cufit bench` divides energy by blocks of a second.
TEST(Sampler, DearValuesEachTimeWhereAsked) {
  const auto with = [](int joules) {
    return test::k_system + test::h200(0, "energy_mj = " + std::to_string(1000 * joules) + "\n");
  };
  const LiveMachine machine(with(1));
  const RealHost host = machine.host();
  SamplerOptions all = options();
  all.all_each_time = true;
  GpuSampler sampler(host, all);
  const auto begin = std::chrono::steady_clock::now();
  for (int joules = 1; joules <= 4; ++joules) {
    machine.becomes(with(joules));
    ASSERT_TRUE(until(sampler, [&](const GpuSample& sample) {
      return is_fresh(sample) && sample.gpus[0].energy_joules == joules;
    })) << joules;
  }
  // Four values would take 13.5 s else.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(9));
}

TEST(Sampler, DearValuesGoOn) {
  const auto machine = [](int count) {
    return test::k_system + test::h200(0, "energy_mj = " + std::to_string(1000 * count) +
                                              "\npcie_replays = " + std::to_string(count) + "\n");
  };
  LiveMachine live(machine(1));
  RealHost host = live.host();
  GpuSampler sampler(host, options());
  const auto has = [&](unsigned count) {
    return until(sampler, [count](const GpuSample& sample) {
      return is_fresh(sample) && sample.gpus[0].energy_joules == count &&
             sample.gpus[0].pcie_replays == count;
    });
  };
  ASSERT_TRUE(has(1));
  live.becomes(machine(2));
  ASSERT_TRUE(until(sampler, is_fresh));
  const std::vector<facts::MissingValue>& missing = sampler.newest().missing;
  EXPECT_TRUE(std::any_of(missing.begin(), missing.end(),
                          [](const facts::MissingValue& one) { return one.what == "gpu 0: fan"; }));
  EXPECT_TRUE(has(2));
}

TEST(Sampler, XidsAreCountedOnceThoughTheChildIsReplaced) {
  const auto machine = [](int xids, const std::string& more = {}) {
    return more + test::k_system + test::h200(2, "xid.79 = " + std::to_string(xids) + "\n");
  };
  LiveMachine live(machine(4));  // before it was looked at: not this sampler's
  RealHost host = live.host();
  GpuSampler sampler(host, options());
  ASSERT_TRUE(until(sampler, is_fresh));
  EXPECT_TRUE(sampler.newest().xids.empty());
  const auto counted = [&](uint64_t count) {
    return until(sampler, [&](const GpuSample& sample) {
      return is_fresh(sample) && sample.xids.size() == 1 && sample.xids[0].count == count &&
             sample.xids[0].number == 79 && sample.xids[0].pci == "0000:02:00";
    });
  };
  live.becomes(machine(6));
  ASSERT_TRUE(counted(2));
  live.becomes(machine(6, "crash = nvmlDeviceGetPowerUsage\n"));
  ASSERT_TRUE(until(sampler, [](const GpuSample& sample) { return sample.stalled_seconds > 0; }));
  EXPECT_EQ(sampler.newest().stalled_end.rfind("signal ", 0), 0u) << sampler.newest().stalled_end;
  live.becomes(machine(6));
  ASSERT_TRUE(counted(2));
  live.becomes(machine(7));
  EXPECT_TRUE(counted(3));
}

TEST(Sampler, ADriverThatHangsLeavesTheLastGoodSample) {
  const std::string good = test::k_system + test::h200(0, "utilization = 5\n");
  LiveMachine live(good);
  RealHost host = live.host();
  GpuSampler sampler(host, options());
  ASSERT_TRUE(until(sampler, is_fresh));
  const double time = sampler.newest().time;
  live.becomes("hang = nvmlDeviceGetPowerUsage\n" + good);
  ASSERT_TRUE(until(sampler, [](const GpuSample& sample) { return sample.stalled_seconds > 0.5; }));
  EXPECT_EQ(sampler.newest().stalled_call, "nvmlDeviceGetPowerUsage");
  EXPECT_EQ(sampler.newest().stalled_end, "");  // it did not end by itself
  ASSERT_EQ(sampler.newest().gpus.size(), 1u);
  EXPECT_EQ(sampler.newest().gpus[0].utilization, 0.05);
  EXPECT_GE(sampler.newest().time, time);
  // Waiting never takes longer than it was asked to.
  const auto begun = std::chrono::steady_clock::now();
  sampler.wait(0.2);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
  live.becomes(test::k_system + test::h200(0, "utilization = 80\n"));
  EXPECT_TRUE(until(sampler, [](const GpuSample& sample) {
    return is_fresh(sample) && sample.gpus[0].utilization == 0.8;
  }));
}

TEST(Sampler, ALostGpuKeepsItsName) {
  const std::string both = test::k_system + test::h200(0) + test::h200(1);
  LiveMachine live(both);
  RealHost host = live.host();
  GpuSampler sampler(host, options());
  ASSERT_TRUE(until(sampler, is_fresh));
  live.becomes(test::k_system + test::h200(0) +
               test::h200(1, "fail.nvmlDeviceGetHandleByIndex_v2 = 15\n"));
  ASSERT_TRUE(until(sampler, [](const GpuSample& sample) {
    return sample.gpus.size() == 2 && sample.gpus[1].lost == 15;
  }));
  EXPECT_EQ(sampler.newest().gpus[1].name, "NVIDIA H200");
  EXPECT_EQ(sampler.newest().gpus[1].pci, "0000:01:00.0");
  EXPECT_FALSE(sampler.newest().gpus[1].memory_used_bytes);
  EXPECT_FALSE(sampler.newest().gpus[0].lost);
  live.becomes(both);
  EXPECT_TRUE(until(sampler, [](const GpuSample& sample) {
    return sample.gpus.size() == 2 && !sample.gpus[1].lost && sample.gpus[1].memory_used_bytes;
  }));
}

TEST(Sampler, InstancesAreRowsOfTheirOwn) {
  const GpuSample sample =
      one_sample(test::k_system +
                 test::h200(0,
                            "mig.current = 1\n[mig]\nname = NVIDIA H200 MIG 1g.18gb\n"
                            "uuid = MIG-1\nmemory = 1000\nused = 10\ngpu_instance = 9\n[mig]\n"
                            "name = NVIDIA H200 MIG 2g.35gb\nuuid = MIG-2\nmemory = 2000\n"));
  ASSERT_EQ(sample.gpus.size(), 3u);
  EXPECT_EQ(sample.gpus[1].profile, "1g.18gb");
  EXPECT_EQ(sample.gpus[1].parent_uuid, sample.gpus[0].uuid);
  EXPECT_EQ(sample.gpus[1].memory_used_bytes, 10u);
  EXPECT_EQ(sample.gpus[1].gpu_instance, 9u);
  EXPECT_EQ(sample.gpus[2].uuid, "MIG-2");
  EXPECT_FALSE(sample.gpus[2].temperature_c);
}

TEST(Sampler, NoDriver) {
  RealHost host("/", {});
  SamplerOptions none = options();
  none.library_dir = "/nowhere";
  GpuSampler sampler(host, none);
  ASSERT_TRUE(until(sampler, [&](const GpuSample&) { return sampler.has_answered(); }));
  EXPECT_TRUE(sampler.newest().gpus.empty());
  ASSERT_EQ(sampler.newest().missing.size(), 1u);
  EXPECT_EQ(sampler.newest().missing[0].what, "NVML");
  EXPECT_NE(sampler.newest().missing[0].why.find("libnvidia-ml.so.1"), std::string::npos);
}

TEST(SampleJson, ThereAndBack) {
  GpuSample sample = one_sample(test::k_system + test::h200(1, k_busy));
  sample.processes[0].owner.user = "ann\n\"";
  sample.processes[0].owner.started = 1.5;
  sample.stalled_seconds = 2.25;
  const std::string line = facts::sample_to_json(sample);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Result<GpuSample> again = facts::sample_from_json(line);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(facts::sample_to_json(*again), line);
  EXPECT_EQ(again->processes[0].owner.user, "ann\n\"");
  for (const char* bad : {"", "[]", "{\"gpus\":3}", "{\"time\":\"x\"}",
                          "{\"gpus\":[{\"index\":-1}]}", "{\"gpus\":[{\"index\":5000000000}]}",
                          "{\"processes\":[{\"gpu\":0}]}", "{\"gpus\":[{\"utilization\":true}]}"})
    EXPECT_FALSE(facts::sample_from_json(bad)) << bad;
}

}  // namespace sampler_test
}  // namespace cufit::host
