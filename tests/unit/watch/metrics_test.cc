// SPDX-License-Identifier: Apache-2.0
#include "watch/metrics.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/format.h"

namespace cufit::watch {
namespace metrics_test {

using facts::GpuSample;
using knowledge::Knowledge;

constexpr uint64_t k_gib = uint64_t{1} << 30;

facts::SampledGpu whole_gpu() {
  facts::SampledGpu gpu;
  gpu.uuid = "GPU-1";
  gpu.name = "NVIDIA H200";
  gpu.pci = "0000:61:00.0";
  gpu.memory_total_bytes = 80 * k_gib;
  gpu.memory_used_bytes = 30 * k_gib;
  gpu.memory_free_bytes = 50 * k_gib;
  gpu.memory_reserved_bytes = k_gib;
  gpu.utilization = 0.5;
  gpu.memory_utilization = 0.25;
  gpu.power_watts = 300;
  gpu.power_limit_watts = 700;
  gpu.energy_joules = 1e6;
  gpu.temperature_c = 60;
  gpu.memory_temperature_c = 70;
  gpu.slowdown_temperature_c = 95;
  gpu.fan = 0.3;
  gpu.sm_clock_mhz = 1755;
  gpu.sm_clock_max_mhz = 1980;
  gpu.memory_clock_mhz = 3201;
  gpu.memory_clock_max_mhz = 3201;
  gpu.throttle = std::vector<std::string>{"sw_power_cap"};
  gpu.pcie_rx_bytes_per_s = 1;
  gpu.pcie_tx_bytes_per_s = 2;
  gpu.pcie_gen = 4;
  gpu.pcie_gen_max = 5;
  gpu.pcie_width = 8;
  gpu.pcie_width_max = 16;
  gpu.pcie_replays = 3;
  gpu.nvlinks = 18;
  gpu.nvlinks_active = 17;
  gpu.nvlink_rx_bytes = 4;
  gpu.nvlink_tx_bytes = 5;
  gpu.ecc_corrected = 6;
  gpu.ecc_uncorrected = 7;
  gpu.remapped_corrected = 8;
  gpu.remapped_uncorrected = 9;
  gpu.remap_pending = true;
  gpu.remap_failed = false;
  gpu.pods = std::vector<facts::SampledPod>{{"lab", "train-0", "main"}};
  return gpu;
}

facts::SampledProcess process(uint32_t pid, uint64_t bytes) {
  facts::SampledProcess out;
  out.pid = pid;
  out.memory_bytes = bytes;
  out.utilization = 0.4;
  out.owner.user = "ann";
  out.owner.command = "/opt/conda/bin/python -u /home/ann/train.py --lr 1";
  out.owner.container = "0123456789abcdef0123";
  out.owner.pod = "train-0";
  out.owner.pod_namespace = "lab";
  out.owner.slurm_job = "42";
  return out;
}

GpuSample sample(double time) {
  GpuSample out;
  out.time = time;
  out.driver_version = "580.95.05";
  out.gpus.push_back(whole_gpu());
  out.processes.push_back(process(100, 20 * k_gib));
  return out;
}

facts::LiveDomain domain(uint64_t limit, uint64_t used) {
  facts::LiveDomain out;
  out.path = "/run/cufit/share-team.domain";
  out.domain.name = "team";
  formats::QuotaDevice device;
  device.uuid = "GPU-1";
  device.limit_bytes = limit;
  device.used_bytes = used;
  device.peak_bytes = used;
  device.refusals = 2;
  device.spilled_bytes = 1;
  out.domain.devices.push_back(device);
  return out;
}

struct Page {
  explicit Page(std::vector<MetricFamily> made) : families(std::move(made)) {}

  const MetricFamily* find(std::string_view name) const {
    for (const MetricFamily& family : families)
      if (family.metric->name == name) return &family;
    return nullptr;
  }
  // Of the one point that has these labels, "gpu=0"; nothing: there is none, or several.
  std::optional<double> value(std::string_view name, std::vector<std::string> labels = {}) const {
    std::optional<double> out;
    const MetricFamily* family = find(name);
    if (family == nullptr) return out;
    for (const MetricPoint& point : family->points) {
      size_t equal = 0;
      for (const std::string& label : labels) {
        const size_t at = label.find('=');
        equal += point.label(label.substr(0, at)) == label.substr(at + 1) ? 1 : 0;
      }
      if (equal != labels.size()) continue;
      if (out) return std::nullopt;
      out = point.value;
    }
    return out;
  }
  size_t points(std::string_view name) const {
    const MetricFamily* family = find(name);
    return family == nullptr ? 0 : family->points.size();
  }
  std::vector<MetricFamily> families;
};

Page page_of(const Watcher& watcher, const MachineState& state = {}, double now = 0,
             const MetricLimits& limits = {}) {
  return Page(machine_metrics(watcher.now(), state, now, limits, Knowledge::builtin()));
}

// A metric that the table promises and nobody gives, a label that it does not list: each would be a broken alert.
TEST(Metrics, GiveAllThatTheTableListsWithItsLabels) {
  Watcher watcher;
  // A leak, long enough to be named.
  for (int i = 0; i < 600; ++i) {
    GpuSample one = sample(1000 + i);
    one.processes[0].memory_bytes = 20 * k_gib + static_cast<uint64_t>(i) * (k_gib / 20);
    one.gpus[0].memory_free_bytes = 50 * k_gib - static_cast<uint64_t>(i) * (k_gib / 20);
    watcher.add(one);
  }
  MachineState state;
  state.quotas.domains.push_back(domain(60 * k_gib, 20 * k_gib));
  state.gpus_on_bus = 1;
  state.kernel_driver = state.library_version = "580.95.05";
  const Page page = page_of(watcher, state, 1600);
  for (const knowledge::MetricRow& row : Knowledge::builtin().metrics) {
    const MetricFamily* family = page.find(row.name);
    ASSERT_NE(family, nullptr) << row.name;
    const auto allowed = split(row.labels, ' ');
    for (const MetricPoint& point : family->points) {
      size_t next = 0;
      for (const auto& [name, text] : point.labels) {
        while (next < allowed.size() && allowed[next] != name) ++next;
        EXPECT_LT(next, allowed.size())
            << row.name << " has a label " << name << " not in its place";
        EXPECT_FALSE(text.empty());
      }
    }
  }
}

TEST(Metrics, AreOfBaseUnits) {
  Watcher watcher;
  watcher.add(sample(1000));
  const Page page = page_of(watcher, {}, 1007.5);
  EXPECT_EQ(page.value("cufit_gpu_memory_used_bytes", {"gpu=0", "uuid=GPU-1"}), 30.0 * k_gib);
  EXPECT_EQ(page.value("cufit_gpu_memory_unattributed_bytes"), 10.0 * k_gib);
  EXPECT_EQ(page.value("cufit_gpu_clock_hertz", {"clock=sm"}), 1.755e9);
  EXPECT_EQ(page.value("cufit_gpu_clock_max_hertz", {"clock=memory"}), 3.201e9);
  EXPECT_EQ(page.value("cufit_gpu_temperature_celsius", {"sensor=memory"}), 70);
  EXPECT_EQ(page.value("cufit_gpu_pcie_receive_bytes_per_second"), 1);
  EXPECT_EQ(page.value("cufit_gpu_nvlink_transmit_bytes_total"), 5);
  EXPECT_EQ(page.value("cufit_ecc_errors_total", {"kind=uncorrected"}), 7);
  EXPECT_EQ(page.value("cufit_remapped_rows", {"kind=corrected"}), 8);
  EXPECT_EQ(page.value("cufit_remap_pending"), 1);
  EXPECT_EQ(page.value("cufit_remap_failed"), 0);
  EXPECT_EQ(page.value("cufit_sample_age_seconds"), 7.5);
  EXPECT_EQ(page.value("cufit_process_memory_bytes",
                       {"pid=100", "user=ann", "command=python train.py", "container=0123456789ab",
                        "pod=train-0", "namespace=lab", "job=42"}),
            20.0 * k_gib);
}

// What a card does not have is no series, and no zero.
TEST(Metrics, OfWhatIsAbsentAreAbsent) {
  Watcher watcher;
  GpuSample bare = sample(1000);
  bare.gpus[0] = {};
  bare.gpus[0].uuid = "GPU-1";
  bare.gpus[0].pci = "0000:61:00.0";
  bare.processes.clear();
  watcher.add(bare);
  std::set<std::string_view> names;
  const Page page = page_of(watcher);
  for (const MetricFamily& family : page.families) names.insert(family.metric->name);
  EXPECT_EQ(names, (std::set<std::string_view>{
                       "cufit_gpu_info", "cufit_xid_errors_total", "cufit_gpu_lost", "cufit_gpus",
                       "cufit_driver_stalled", "cufit_driver_stalled_seconds",
                       "cufit_sample_age_seconds", "cufit_exporter_series_dropped"}));
}

// The memory of a divided GPU is that of its instances: sum() must not count it twice.
TEST(Metrics, OfMemoryAreNotThereTwiceOnADividedGpu) {
  Watcher watcher;
  GpuSample divided = sample(1000);
  divided.processes.clear();
  facts::SampledGpu instance;
  instance.uuid = "MIG-1";
  instance.parent_uuid = "GPU-1";
  instance.profile = "1g.10gb";
  instance.memory_used_bytes = 3 * k_gib;
  divided.gpus.push_back(instance);
  watcher.add(divided);
  const Page page = page_of(watcher);
  EXPECT_EQ(page.points("cufit_gpu_memory_used_bytes"), 1u);
  EXPECT_EQ(page.value("cufit_gpu_memory_used_bytes", {"profile=1g.10gb", "uuid=MIG-1", "gpu=0"}),
            3.0 * k_gib);
  EXPECT_EQ(page.value("cufit_gpus"), 1);
  EXPECT_EQ(page.points("cufit_gpu_lost"), 1u);
}

TEST(Metrics, CountThrottlingBetweenSamples) {
  Watcher watcher;
  GpuSample one = sample(1000);
  one.gpus[0].throttle->clear();
  watcher.add(one);
  watcher.add(sample(1010));  // begins in between
  watcher.add(sample(1020));
  watcher.add(sample(2020));  // nothing is known of such a gap
  one.time = 2030;
  watcher.add(one);
  const Page page = page_of(watcher);
  EXPECT_EQ(page.value("cufit_throttle_seconds_total", {"reason=sw_power_cap"}), 20);
  EXPECT_EQ(page.value("cufit_throttle_seconds_total", {"reason=hw_thermal_slowdown"}), 0);
}

// The number of a GPU that fell off the bus is the one that matters most.
TEST(Metrics, CountXidsOfAGpuThatIsGone) {
  Watcher watcher;
  watcher.add(sample(1000));
  EXPECT_EQ(page_of(watcher).value("cufit_xid_errors_total", {"gpu=0", "uuid=GPU-1", "xid=79"}), 0);
  GpuSample gone = sample(1001);
  gone.gpus.clear();
  gone.processes.clear();
  gone.xids.push_back({"0000:61:00", 79, 1});
  gone.xids.push_back({"0000:99:00", 79, 2});  // of a GPU that was never listed
  watcher.add(gone);
  const Page page = page_of(watcher);
  EXPECT_EQ(page.value("cufit_xid_errors_total", {"gpu=0", "uuid=GPU-1", "xid=79"}), 1);
  EXPECT_EQ(page.value("cufit_xid_errors_total", {"gpu=", "uuid=", "xid=79"}), 2);
  EXPECT_EQ(page.value("cufit_gpu_lost", {"gpu=0", "uuid=GPU-1"}), 1);
  EXPECT_EQ(page.value("cufit_gpus"), 0);
  watcher.add(sample(1002));
  EXPECT_EQ(page_of(watcher).value("cufit_gpu_lost"), 0);
  GpuSample lost = sample(1003);
  lost.gpus[0].lost = 15;
  watcher.add(lost);
  EXPECT_EQ(page_of(watcher).value("cufit_gpu_lost"), 1);
}

// A driver that is unloaded or updated is not that every GPU is broken.
TEST(Metrics, OfNvmlThatIsGoneSayNothingOfTheGpus) {
  Watcher watcher;
  watcher.add(sample(1000));
  GpuSample none;
  none.time = 1001;
  none.missing.push_back({"NVML", "nvmlInit_v2: Driver/library version mismatch (18)"});
  watcher.add(none);
  EXPECT_EQ(page_of(watcher).value("cufit_gpu_lost", {"gpu=0"}), 0);
  none.time = 1002;
  none.missing.clear();
  watcher.add(none);
  EXPECT_EQ(page_of(watcher).value("cufit_gpu_lost", {"gpu=0"}), 1);
}

TEST(Metrics, NameTheProgramAndNotTheValuesOfItsOptions) {
  const auto command = [](const char* text) {
    Watcher watcher;
    GpuSample one = sample(1000);
    one.processes[0].owner.command = text;
    watcher.add(one);
    return std::string(
        page_of(watcher).find("cufit_process_memory_bytes")->points[0].label("command"));
  };
  EXPECT_EQ(command("/usr/bin/python3 -W ignore /home/ann/train.py --lr 1"), "python3 train.py");
  EXPECT_EQ(command("python -m torch.distributed.run --nproc 2 a.py"),
            "python -m torch.distributed.run");
  EXPECT_EQ(command("prog --token abc"), "prog");
  EXPECT_EQ(command("/opt/vllm serve model"), "vllm serve");
  EXPECT_EQ(command(""), "");
}

TEST(Metrics, TellQuotasOfOneNameApart) {
  Watcher watcher;
  watcher.add(sample(1000));
  MachineState state;
  state.quotas.domains = {domain(k_gib, 1), domain(k_gib, 2)};
  state.quotas.domains[0].owner = 1000;
  state.quotas.domains[1].owner = 1001;
  const Page page = page_of(watcher, state);
  EXPECT_EQ(page.value("cufit_quota_used_bytes", {"quota=team@1000"}), 1);
  EXPECT_EQ(page.value("cufit_quota_used_bytes", {"quota=team@1001"}), 2);
}

TEST(Metrics, OfProcessesAreBounded) {
  Watcher watcher;
  GpuSample many = sample(1000);
  many.processes.clear();
  for (uint32_t pid = 1; pid <= 10; ++pid) many.processes.push_back(process(pid, pid * k_gib));
  watcher.add(many);
  const Page page = page_of(watcher, {}, 0, {.processes = 3});
  EXPECT_EQ(page.points("cufit_process_memory_bytes"), 3u);
  EXPECT_TRUE(page.value("cufit_process_memory_bytes", {"pid=10"}));
  EXPECT_FALSE(page.value("cufit_process_memory_bytes", {"pid=7"}));
  EXPECT_EQ(page.value("cufit_exporter_series_dropped"), 14);  // memory and use of seven
}

// Either makes Prometheus refuse the whole page.
TEST(Metrics, HaveNoEqualSeriesAndNoBrokenLetters) {
  Watcher watcher;
  GpuSample twice = sample(1000);
  twice.processes.push_back(twice.processes[0]);
  twice.processes.push_back(process(101, k_gib));
  twice.processes[2].owner.user = "a\xff\n";
  watcher.add(twice);
  const Page page = page_of(watcher);
  EXPECT_EQ(page.points("cufit_process_memory_bytes"), 2u);
  EXPECT_TRUE(page.value("cufit_process_memory_bytes", {"user=a??"}));
}

TEST(Metrics, TellWhenAQuotaIsFull) {
  Watcher watcher;
  for (int i = 0; i < 600; ++i) {
    GpuSample one = sample(1000 + i);
    one.processes[0].memory_bytes = 20 * k_gib + static_cast<uint64_t>(i) * (k_gib / 20);
    one.gpus[0].memory_free_bytes = 50 * k_gib - static_cast<uint64_t>(i) * (k_gib / 20);
    one.processes[0].owner.quota = "/run/cufit/share-team.domain";
    watcher.add(one);
  }
  MachineState state;
  const std::optional<double> card = page_of(watcher).value("cufit_process_memory_full_seconds");
  ASSERT_TRUE(card);
  EXPECT_NEAR(*card, 20 * 20, 60);
  state.quotas.domains.push_back(domain(55 * k_gib, 50 * k_gib));
  const Page page = page_of(watcher, state);
  EXPECT_NEAR(page.value("cufit_process_memory_full_seconds").value_or(0), 100, 15);
  EXPECT_EQ(page.value("cufit_quota_limit_bytes", {"quota=team", "gpu=0", "uuid=GPU-1"}),
            55.0 * k_gib);
  EXPECT_EQ(page.value("cufit_quota_refusals_total"), 2);
  EXPECT_EQ(page.value("cufit_host_spill_bytes"), 1);
  // Without a limit there is no series of one.
  state.quotas.domains[0] = domain(formats::k_no_quota, k_gib);
  EXPECT_EQ(page_of(watcher, state).points("cufit_quota_limit_bytes"), 0u);
}

TEST(Metrics, OfTheDriver) {
  MachineState state;
  state.kernel_driver = "580.95.05";
  Watcher watcher;
  GpuSample stalled;
  stalled.stalled_seconds = 7;
  watcher.add(stalled);
  EXPECT_FALSE(page_of(watcher, state).value("cufit_driver_mismatch"));
  state.library_version = "570.1";
  const Page page = page_of(watcher, state);
  EXPECT_EQ(page.value("cufit_driver_mismatch"), 1);
  EXPECT_EQ(page.value("cufit_driver_stalled"), 1);
  EXPECT_EQ(page.value("cufit_driver_stalled_seconds"), 7);
  EXPECT_FALSE(page.value("cufit_sample_age_seconds"));
}

}  // namespace metrics_test
}  // namespace cufit::watch
