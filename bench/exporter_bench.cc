// SPDX-License-Identifier: Apache-2.0
// The page of `cufit exporter` for 8 GPUs and 64 processes, from a sample that is there to the text that is sent, beside the
// same sample as a line of a recording. tools/bench prints the ratio.
#include <benchmark/benchmark.h>

#include <string>

#include "base/format.h"
#include "facts/gpu_sample_json.h"
#include "host/serve/prometheus_text.h"
#include "report/metric_page.h"
#include "watch/dcgm_metrics.h"
#include "watch/metrics.h"
#include "watch/watcher.h"

namespace {

using namespace cufit;

facts::SampledGpu gpu(uint32_t index) {
  facts::SampledGpu out;
  out.index = index;
  out.uuid = format("GPU-00000000-1111-2222-3333-44444444444{}", index);
  out.name = "NVIDIA H200";
  out.pci = format("0000:6{}:00.0", index);
  out.memory_total_bytes = 150754820096;
  out.memory_used_bytes = 96600000000;
  out.memory_free_bytes = 54154820096;
  out.utilization = 0.97;
  out.memory_utilization = 0.41;
  out.power_watts = 612.5;
  out.power_limit_watts = 700;
  out.energy_joules = 5250000.25;
  out.temperature_c = 61;
  out.throttle = {"sw_power_cap"};
  out.sm_clock_mhz = 1785;
  out.sm_clock_max_mhz = 1980;
  out.memory_clock_mhz = 3201;
  out.memory_clock_max_mhz = 3201;
  out.pcie_gen = out.pcie_gen_max = 5;
  out.pcie_width = out.pcie_width_max = 16;
  out.pcie_replays = 3;
  out.pcie_tx_bytes_per_s = 1200000000;
  out.pcie_rx_bytes_per_s = 900000000;
  out.nvlinks = out.nvlinks_active = 18;
  out.ecc_corrected = 2;
  out.ecc_uncorrected = 0;
  out.remapped_corrected = out.remapped_uncorrected = 0;
  out.remap_pending = out.remap_failed = false;
  return out;
}

facts::GpuSample sample(double time) {
  facts::GpuSample out;
  out.time = time;
  out.driver_version = "580.95.05";
  for (uint32_t i = 0; i < 8; ++i) out.gpus.push_back(gpu(i));
  for (uint32_t i = 0; i < 64; ++i) {
    facts::SampledProcess one;
    one.gpu = i / 8;
    one.pid = 20000 + i;
    one.kind = "compute";
    one.memory_bytes = uint64_t{5000000000} + i;
    one.utilization = 0.12;
    one.owner.visible = true;
    one.owner.uid = 1000;
    one.owner.user = "li";
    one.owner.command = "python3 train.py --config large.yaml ***";
    one.owner.started = 1796000000 + i;
    one.owner.slurm_job = "48213";
    out.processes.push_back(std::move(one));
  }
  out.xids.push_back({"0000:60:00", 79, 1});
  return out;
}

const knowledge::Knowledge& tables() { return knowledge::Knowledge::builtin(); }

// Argument 1: with DCGM's names as well.
void exporter_page(benchmark::State& state) {
  const auto write = host::open_prometheus_text();
  if (!write) return state.SkipWithError(write.error().text().c_str());
  watch::Watcher watcher;
  for (int i = 0; i < 20; ++i) watcher.add(sample(1796033100 + 5.0 * i));
  size_t bytes = 0;
  for (auto _ : state) {
    std::vector<watch::MetricFamily> families =
        watch::machine_metrics(watcher.now(), {}, 1796033200, {}, tables());
    if (state.range(0) == 1)
      for (watch::MetricFamily& family : watch::dcgm_metrics(watcher.now(), "gpu7", tables()))
        families.push_back(std::move(family));
    const Result<std::string> page = report::metric_page(families, *write);
    bytes = page ? page->size() : 0;
    benchmark::DoNotOptimize(bytes);
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(exporter_page)->Arg(0)->Arg(1);

void sample_line(benchmark::State& state) {
  const facts::GpuSample one = sample(1796033100);
  for (auto _ : state) benchmark::DoNotOptimize(facts::sample_to_json(one));
}
BENCHMARK(sample_line);

}  // namespace
