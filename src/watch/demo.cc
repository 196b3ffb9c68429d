// SPDX-License-Identifier: Apache-2.0
#include "watch/demo.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "base/format.h"

namespace cufit::watch {
namespace {

constexpr double k_demo_seconds = 2400, k_demo_step = 5;
constexpr uint64_t k_mib = uint64_t{1} << 20, k_gib = uint64_t{1} << 30;
constexpr uint64_t k_card_bytes = 81559 * k_mib;  // an H100 SXM5, as NVML says
constexpr uint64_t k_driver_bytes = 4 * k_mib;    // in use with no process
constexpr uint64_t k_leak_of_minute = 118 * k_mib;

// From 0 to 1, of no order that is seen.
double noise(int step, int which) {
  uint64_t x = static_cast<uint64_t>(step) * 0x9E3779B97F4A7C15u +
               static_cast<uint64_t>(which) * 0xBF58476D1CE4E5B9u;
  x ^= x >> 31;
  x *= 0x94D049BB133111EBu;
  x ^= x >> 29;
  return static_cast<double>(x >> 11) / 9007199254740992.0;
}

struct DemoProcess {
  uint32_t gpu, pid, uid;
  const char *user, *command;
  double age;  // at the end
};

facts::SampledProcess process_of(const DemoProcess& about, double end, uint64_t bytes, double use) {
  facts::SampledProcess out;
  out.gpu = about.gpu;
  out.pid = about.pid;
  out.kind = "compute";
  out.memory_bytes = bytes;
  out.utilization = use;
  out.owner.visible = true;
  out.owner.uid = about.uid;
  out.owner.user = about.user;
  out.owner.command = about.command;
  out.owner.started = end - about.age;
  return out;
}

void add_processes(int step, double now, double end, facts::GpuSample& sample) {
  // Both ranks, and a validation each eight minutes that needs more.
  const bool validates = std::fmod(now, 480) < 40;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const uint64_t bytes = 61 * k_gib + (now > 480 ? 5 * k_gib : 0) + rank * 300 * k_mib;
    facts::SampledProcess one = process_of(
        {rank, 21840 + rank, 1001, "ann", "python train.py --config llama-7b.yaml", 26400}, end,
        bytes, validates ? 0.71 : 0.93 + noise(step, 1) * 0.06);
    one.owner.slurm_job = "48213";
    one.owner.slurm_step = "0";
    one.owner.parent = 21833;
    sample.processes.push_back(std::move(one));
  }
  const auto leaked =
      static_cast<uint64_t>((now + 5400) / 60 * static_cast<double>(k_leak_of_minute));
  facts::SampledProcess leak =
      process_of({2, 30977, 1004, "li", "python serve.py --model qwen3-8b", 7800}, end,
                 18 * k_gib + leaked / (20 * k_mib) * (20 * k_mib), 0.2 + noise(step, 2) * 0.5);
  leak.owner.pod = "eval-7f9c6";
  leak.owner.pod_namespace = "nlp";
  leak.owner.runtime = "containerd";
  leak.owner.container = "4f0c9a7be2d15c3e8a6b90d7713fe2c44f0c9a7be2d15c3e8a6b90d7713fe2c4";
  sample.processes.push_back(std::move(leak));
  facts::SampledProcess idle =
      process_of({2, 11452, 1002, "bo", "python -m ipykernel_launcher -f kernel.json", 190000}, end,
                 41 * k_gib, 0);
  idle.owner.unit = "jupyter-bo.service";
  sample.processes.push_back(std::move(idle));
  facts::SampledProcess hot = process_of(
      {3, 5120, 1003, "mia", "python render.py --frames 4800", 7300}, end, 38 * k_gib, 0.99);
  hot.owner.runtime = "docker";
  hot.owner.container = "9b1d4c0077aa5e2f9b1d4c0077aa5e2f9b1d4c0077aa5e2f9b1d4c0077aa5e2f";
  hot.owner.container_name = "render";
  sample.processes.push_back(std::move(hot));
}

facts::SampledGpu gpu_of(uint32_t index, int step) {
  constexpr double k_use[] = {0.97, 0.97, 0.34, 0.99}, k_watts[] = {655, 648, 240, 430};
  constexpr int k_heat[] = {68, 71, 49, 91};
  facts::SampledGpu out;
  out.index = index;
  out.uuid = format("GPU-00000000-0000-0000-0000-{:012}", index + 1);
  out.name = "NVIDIA H100 80GB HBM3";
  out.pci = format("0000:{:02x}:00.0", 0x1b + index * 0x20);
  out.memory_total_bytes = k_card_bytes;
  out.memory_reserved_bytes = 551 * k_mib;
  const double wave = noise(step, static_cast<int>(index) + 10) - 0.5;
  out.utilization = std::min(1.0, k_use[index] + wave * 0.05);
  out.memory_utilization = *out.utilization * 0.45;
  out.power_watts = k_watts[index] + wave * 30;
  out.power_limit_watts = 700;
  out.temperature_c = k_heat[index];
  out.memory_temperature_c = k_heat[index] + 9;
  out.slowdown_temperature_c = 92;
  out.sm_clock_mhz = index == 3 ? 1185 : 1980;
  out.sm_clock_max_mhz = 1980;
  out.memory_clock_mhz = out.memory_clock_max_mhz = 2619;
  out.throttle =
      index == 3 ? std::vector<std::string>{"sw_thermal_slowdown"} : std::vector<std::string>{};
  out.pcie_gen = out.pcie_gen_max = 5;
  out.pcie_width = out.pcie_width_max = 16;
  const double traffic = index < 2 ? 4.1e9 + wave * 1e9 : 3e7;
  out.pcie_rx_bytes_per_s = static_cast<uint64_t>(traffic);
  out.pcie_tx_bytes_per_s = static_cast<uint64_t>(traffic / 3);
  out.nvlinks = out.nvlinks_active = 18;
  out.ecc_corrected = index == 3 ? 4 : 0;
  out.ecc_uncorrected = 0;
  out.compute_mode = "default";
  return out;
}

}  // namespace

std::vector<facts::GpuSample> demo_samples(double end) {
  std::vector<facts::GpuSample> out;
  for (int step = 0; step * k_demo_step <= k_demo_seconds; ++step) {
    const double now = step * k_demo_step;
    facts::GpuSample sample;
    sample.time = end - k_demo_seconds + now;
    sample.driver_version = "580.95.05";
    for (uint32_t i = 0; i < 4; ++i) sample.gpus.push_back(gpu_of(i, step));
    add_processes(step, now, end, sample);
    for (uint32_t i = 0; i < 4; ++i) {
      uint64_t used = k_driver_bytes;
      for (const facts::SampledProcess& process : sample.processes)
        if (process.gpu == i) used += *process.memory_bytes;
      sample.gpus[i].memory_used_bytes = used;
      sample.gpus[i].memory_free_bytes = k_card_bytes - used;
    }
    sample.xids.push_back({"0000:7b:00", 43, 1});
    out.push_back(std::move(sample));
  }
  return out;
}

}  // namespace cufit::watch
