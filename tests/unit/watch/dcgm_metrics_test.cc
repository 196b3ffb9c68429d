// SPDX-License-Identifier: Apache-2.0
#include "watch/dcgm_metrics.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/format.h"
#include "watch/demo.h"

namespace cufit::watch {
namespace dcgm_metrics_test {

const knowledge::Knowledge& tables() { return knowledge::Knowledge::builtin(); }

facts::SampledGpu whole_gpu() {
  facts::SampledGpu gpu;
  gpu.index = 3;
  gpu.uuid = "GPU-1";
  gpu.name = "NVIDIA H100 80GB HBM3";
  gpu.pci = "0000:b5:00.0";
  gpu.memory_total_bytes = uint64_t{80} << 30;
  gpu.memory_used_bytes = (uint64_t{5} << 20) + 1048575;
  gpu.utilization = 0.29;
  gpu.power_watts = 350.25;
  gpu.energy_joules = 1234.567;
  gpu.sm_clock_mhz = 1980;
  gpu.remap_failed = false;
  return gpu;
}

WatchedMachine watched(const std::vector<facts::SampledGpu>& gpus) {
  facts::GpuSample sample;
  sample.time = 1;
  sample.driver_version = "570.86.15";
  sample.gpus = gpus;
  Watcher watcher;
  watcher.add(sample);
  return watcher.now();
}

// "NAME{label="value",...} value", a line for each series.
std::vector<std::string> lines_of(const std::vector<MetricFamily>& families,
                                  std::string_view name) {
  std::vector<std::string> out;
  for (const MetricFamily& family : families) {
    if (family.metric->name != name) continue;
    for (const MetricPoint& point : family.points) {
      std::string labels;
      for (const auto& [label, text] : point.labels)
        labels += format("{}{}=\"{}\"", labels.empty() ? "" : ",", label, text);
      out.push_back(format("{{{}}} {:.10g}", labels, point.value));
    }
  }
  return out;
}

std::vector<std::string> lines_of(const WatchedMachine& machine, std::string_view name) {
  return lines_of(dcgm_metrics(machine, "node-1", tables()), name);
}

using Lines = std::vector<std::string>;
constexpr std::string_view k_labels =
    "gpu=\"3\",UUID=\"GPU-1\",pci_bus_id=\"00000000:B5:00.0\",device=\"nvidia3\","
    "modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"node-1\",hostname=\"node-1\","
    "DCGM_FI_DRIVER_VERSION=\"570.86.15\"";

std::string line(std::string_view more, std::string_view value) {
  return format("{{{}{}}} {}", k_labels, more, value);
}

TEST(DcgmMetrics, LabelsAndUnitsAreDcgms) {
  const WatchedMachine machine = watched({whole_gpu()});
  EXPECT_EQ(lines_of(machine, "DCGM_FI_DEV_SM_CLOCK"), Lines{line("", "1980")});
  EXPECT_EQ(lines_of(machine, "DCGM_FI_DEV_GPU_UTIL"), Lines{line("", "29")});
  EXPECT_EQ(lines_of(machine, "DCGM_FI_DEV_POWER_USAGE"), Lines{line("", "350.25")});
  EXPECT_EQ(lines_of(machine, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"), Lines{line("", "1234567")});
  EXPECT_EQ(lines_of(machine, "DCGM_FI_DEV_FB_TOTAL"), Lines{line("", "81920")});
  // A MiB that is not full does not count.
  EXPECT_EQ(lines_of(machine, "DCGM_FI_DEV_FB_USED"), Lines{line("", "5")});
  EXPECT_EQ(lines_of(machine, "DCGM_FI_DEV_ROW_REMAP_FAILURE"), Lines{line("", "0")});
  // Absent is absent.
  EXPECT_EQ(lines_of(machine, "DCGM_FI_DEV_GPU_TEMP"), Lines{});
  EXPECT_EQ(lines_of(machine, "DCGM_FI_DEV_FB_FREE"), Lines{});
}

TEST(DcgmMetrics, NothingIsKnown) {
  EXPECT_TRUE(dcgm_metrics({}, "", tables()).empty());
  EXPECT_EQ(
      lines_of(dcgm_metrics(watched({facts::SampledGpu()}), "", tables()), "DCGM_FI_DEV_SM_CLOCK"),
      Lines{});
}

// Memory is the instances', heat and power the GPU's: no sum has anything twice, no two series are alike.
TEST(DcgmMetrics, InstancesHaveTheirNumber) {
  facts::SampledGpu instance;
  instance.index = 3;
  instance.uuid = "MIG-1";
  instance.parent_uuid = "GPU-1";
  instance.pci = "0000:b5:00.0";
  instance.name = "NVIDIA H100 80GB HBM3";
  instance.profile = "1g.10gb";
  instance.gpu_instance = 9;
  instance.memory_used_bytes = uint64_t{2} << 20;
  facts::SampledGpu second = instance, unknown = instance;
  second.uuid = "MIG-2";
  second.gpu_instance = 10;
  unknown.uuid = "MIG-3";
  unknown.gpu_instance.reset();
  const WatchedMachine machine = watched({whole_gpu(), instance, second, unknown});
  const Lines used = lines_of(machine, "DCGM_FI_DEV_FB_USED");
  ASSERT_EQ(used.size(), 2u);
  EXPECT_TRUE(contains(used[0], "UUID=\"GPU-1\"")) << used[0];
  EXPECT_TRUE(contains(used[0], "GPU_I_PROFILE=\"1g.10gb\",GPU_I_ID=\"9\",")) << used[0];
  EXPECT_TRUE(contains(used[1], "GPU_I_ID=\"10\",")) << used[1];
  EXPECT_EQ(lines_of(machine, "DCGM_FI_DEV_FB_TOTAL"), Lines{});
  EXPECT_EQ(lines_of(machine, "DCGM_FI_DEV_POWER_USAGE"), Lines{line("", "350.25")});
}

TEST(DcgmMetrics, UsersAreNamedWhereTheyAreAlone) {
  facts::SampledGpu other = whole_gpu();
  other.index = 4;
  other.uuid = "GPU-2";
  other.pci = "0000:b6:00.0";
  facts::GpuSample sample;
  sample.time = 1;
  sample.driver_version = "570.86.15";
  sample.gpus = {whole_gpu(), other};
  const auto add = [&](uint32_t gpu, const char* pod, const char* job) {
    facts::SampledProcess process;
    process.gpu = gpu;
    process.pid = static_cast<uint32_t>(sample.processes.size() + 1);
    process.owner.pod = pod;
    process.owner.pod_namespace = *pod == '\0' ? "" : "ml";
    process.owner.container_name = *pod == '\0' ? "" : "main";
    process.owner.slurm_job = job;
    sample.processes.push_back(process);
  };
  add(0, "train-0", "");
  add(0, "train-0", "");
  add(1, "", "77");
  Watcher watcher;
  watcher.add(sample);
  Lines power = lines_of(watcher.now(), "DCGM_FI_DEV_POWER_USAGE");
  EXPECT_EQ(power[0], line(",container=\"main\",namespace=\"ml\",pod=\"train-0\"", "350.25"));
  EXPECT_TRUE(contains(power[1], ",hpc_job=\"77\"}")) << power[1];
  // Shared: its figures are nobody's alone.
  add(0, "train-1", "");
  add(1, "", "78");
  sample.time = 2;
  watcher.add(sample);
  power = lines_of(watcher.now(), "DCGM_FI_DEV_POWER_USAGE");
  EXPECT_EQ(power[0], line("", "350.25"));
  EXPECT_FALSE(contains(power[1], "hpc_job")) << power[1];
}

TEST(DcgmMetrics, TheLastXidAlsoOfALostGpu) {
  facts::GpuSample sample;
  sample.time = 1;
  sample.driver_version = "570.86.15";
  sample.gpus = {whole_gpu()};
  const std::string here = "0000:b5:00";
  sample.xids = {{here, 48, 1}};  // of the kernel's log, weeks ago
  Watcher watcher;
  watcher.add(sample);
  const auto last = [&] { return lines_of(watcher.now(), "DCGM_FI_DEV_XID_ERRORS"); };
  EXPECT_EQ(last(), Lines{line(",err_code=\"0\",err_msg=\"no error\"", "0")});
  const auto becomes = [&](std::vector<facts::SampledXid> xids) {
    ++sample.time;
    sample.xids = std::move(xids);
    watcher.add(sample);
    return last().at(0);
  };
  EXPECT_TRUE(ends_with(becomes({{here, 13, 2}, {"0000:b6:00", 79, 1}}), " 13"));
  // What stays is older than what rises, whatever its number.
  EXPECT_TRUE(ends_with(becomes({{here, 13, 2}, {here, 94, 1}}), " 94"));
  EXPECT_TRUE(ends_with(becomes({{here, 13, 3}, {here, 94, 1}}), " 13"));
  EXPECT_TRUE(ends_with(becomes({{here, 13, 3}, {here, 94, 1}}), " 13"));
  sample.gpus.clear();
  const std::string lost = becomes({{here, 13, 3}, {here, 79, 1}, {here, 94, 1}});
  EXPECT_TRUE(contains(lost, "err_code=\"79\",err_msg=\"")) << lost;
  EXPECT_TRUE(ends_with(lost, " 79")) << lost;
  EXPECT_TRUE(contains(becomes({{here, 9999, 1}}), "err_msg=\"unknown\"")) << last().at(0);
}

// Each metric has one value, and that value is there to be found.
TEST(DcgmMetrics, TablesAgree) {
  std::set<std::string_view> names, valued;
  for (const knowledge::MetricRow& row : tables().dcgm_metrics) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(row.type == "gauge" || row.type == "counter") << row.name;
    EXPECT_TRUE(starts_with(row.name, "DCGM_FI_DEV_")) << row.name;
  }
  for (const knowledge::DcgmValue& row : tables().dcgm_values) {
    EXPECT_TRUE(valued.insert(row.metric).second) << row.metric;
    EXPECT_TRUE(row.times == 0 || row.per == 0) << row.metric;
  }
  EXPECT_EQ(names, valued);
  facts::SampledGpu full = whole_gpu();
  full.memory_free_bytes = full.memory_reserved_bytes = full.power_violation_ns = 1;
  full.thermal_violation_ns = full.pcie_replays = full.ecc_corrected = full.ecc_uncorrected = 1;
  full.remapped_corrected = full.remapped_uncorrected = 1;
  full.memory_utilization = full.power_limit_watts = full.fan = 1;
  full.temperature_c = full.memory_temperature_c = full.slowdown_temperature_c = 1;
  full.sm_clock_max_mhz = full.memory_clock_mhz = full.memory_clock_max_mhz = 1;
  full.pcie_gen = full.pcie_gen_max = full.pcie_width = full.pcie_width_max = 1;
  full.remap_pending = true;
  const std::vector<MetricFamily> all = dcgm_metrics(watched({full}), "node-1", tables());
  EXPECT_EQ(all.size(), names.size());
}

// What Grafana's board 12239 asks for, but for DCGM_FI_PROF_PIPE_TENSOR_ACTIVE.
TEST(DcgmMetrics, BoardHasItsSeries) {
  Watcher watcher;
  for (const facts::GpuSample& sample : demo_samples(1e9)) watcher.add(sample);
  for (const char* name : {"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE",
                           "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"})
    EXPECT_EQ(lines_of(watcher.now(), name).size(), 4u) << name;
}

}  // namespace dcgm_metrics_test
}  // namespace cufit::watch
