// SPDX-License-Identifier: Apache-2.0
// Values with a number instead of a function, and those that cost the driver more than all others together.
#include <iterator>

#include "host/driver/nvml_sample_values.h"

namespace cufit::host {
namespace {

using namespace nvml;

// Not in each sample of a second: on an H200 with driver 580 the energy takes 3.2 ms of processor time, what heat held back 0.4,
// MIG's mode, a fan that is not there and the replays 0.1 each; all else together 3 ms.
constexpr double k_dear_seconds = 4.5;  // an interval of 5 s has all of them in each sample

// Of a union as its type says; nothing: another type, or it was not told.
std::optional<uint64_t> whole_number(const FieldValue& field) {
  if (field.result != k_success) return std::nullopt;
  switch (field.type) {
    case 1:
    case 5:
      return field.value & 0xffffffffu;
    case 2:
    case 3:
    case 4:
      return field.value;
    case 6:
      return field.value & 0xffffu;
    default:
      return std::nullopt;
  }
}

}  // namespace

// What these say, the notes of what is missing among them, stays until they are asked again.
void NvmlSample::take_dear(Device device, facts::SampledGpu& gpu, Before& before) {
  const double now = DriverCalls::now();
  if (all_each_time_ || before.dear_time == 0 || now - before.dear_time >= k_dear_seconds) {
    before.dear_time = now;
    before.dear = {};
    std::map<std::string, std::string> others;
    missing_.swap(others);
    ask_dear(device, before);
    before.dear_missing = std::move(missing_);
    missing_ = std::move(others);
  }
  gpu.energy_joules = before.dear.energy_joules;
  gpu.thermal_violation_ns = before.dear.thermal_violation_ns;
  gpu.pcie_replays = before.dear.pcie_replays;
  gpu.fan = before.dear.fan;
  missing_.insert(before.dear_missing.begin(), before.dear_missing.end());
}

void NvmlSample::ask_dear(Device device, Before& before) {
  facts::SampledGpu& gpu = before.dear;
  uint64_t millijoules = 0;
  const char* const name = "nvmlDeviceGetTotalEnergyConsumption";
  const int result = nvml_.call<int(Device, uint64_t*)>(name, device, &millijoules);
  if (const auto energy = taken(nvml_.answer(result, name, millijoules), "energy_joules"))
    gpu.energy_joules = static_cast<double>(*energy) / 1000;
  FieldValue heat{k_field_thermal_violation};
  if (nvml_.call<int(Device, int, FieldValue*)>("nvmlDeviceGetFieldValues", device, 1, &heat) ==
      k_success)
    gpu.thermal_violation_ns = whole_number(heat);
  if (const auto replays =
          taken(nvml_.number(device, "nvmlDeviceGetPcieReplayCounter"), "pcie_replays"))
    gpu.pcie_replays = *replays;
  gpu.fan = part_of_percent(taken(nvml_.number(device, "nvmlDeviceGetFanSpeed"), "fan"));
  Fact<bool> divided, later;
  nvml_.flags(device, "nvmlDeviceGetMigMode", divided, later);
  before.divided = divided.value_or(false);
}

// Over 20 ms, in which each call waits: for samples that are far enough apart.
void NvmlSample::ask_pcie_rates(Device device, facts::SampledGpu& gpu) {
  const char* const name = "nvmlDeviceGetPcieThroughput";
  const auto rate = [&](uint32_t which, const char* what) -> std::optional<uint64_t> {
    uint32_t kib_per_s = 0;
    const int result =
        nvml_.call<int(Device, uint32_t, uint32_t*)>(name, device, which, &kib_per_s);
    if (const auto told = taken(nvml_.answer(result, name, kib_per_s), what))
      return uint64_t{*told} << 10;
    return std::nullopt;
  };
  gpu.pcie_tx_bytes_per_s = rate(k_pcie_counter_tx, "pcie_tx_bytes_per_s");
  gpu.pcie_rx_bytes_per_s = rate(k_pcie_counter_rx, "pcie_rx_bytes_per_s");
}

// Values that have a number instead of a function. PCIe's counters are of 32 bits with driver 580 on an H200, and turn over
// many times within a sample: only those of 64 count.
void NvmlSample::ask_fields(Device device, facts::SampledGpu& gpu, Before& before) {
  FieldValue fields[] = {{k_field_power_violation},
                         {k_field_memory_temperature},
                         {k_field_nvlink_tx, UINT32_MAX},
                         {k_field_nvlink_rx, UINT32_MAX},
                         {k_field_pcie_tx},
                         {k_field_pcie_rx}};
  const int count = static_cast<int>(std::size(fields)) - (before.has_short_pcie ? 2 : 0);
  const int result =
      nvml_.call<int(Device, int, FieldValue*)>("nvmlDeviceGetFieldValues", device, count, fields);
  if (!taken(nvml_.answer(result, "nvmlDeviceGetFieldValues", true), "fields")) return;
  gpu.power_violation_ns = whole_number(fields[0]);
  if (const auto degrees = whole_number(fields[1]);
      degrees && *degrees > 0 && *degrees < k_most_degrees)
    gpu.memory_temperature_c = static_cast<int32_t>(*degrees);
  const auto bytes_of_kib = [](std::optional<uint64_t> kib) {
    if (kib) *kib = std::min(*kib, UINT64_MAX >> 10) << 10;
    return kib;
  };
  gpu.nvlink_tx_bytes = bytes_of_kib(whole_number(fields[2]));
  gpu.nvlink_rx_bytes = bytes_of_kib(whole_number(fields[3]));
  std::optional<uint64_t> tx, rx;
  if (!before.has_short_pcie) tx = whole_number(fields[4]), rx = whole_number(fields[5]);
  if (!tx || !rx || fields[4].type < 2 || fields[4].type > 4) {
    // It stays so, and asking costs 170 us.
    before.has_short_pcie = fields[4].result == k_success || fields[4].result == k_not_supported;
    if (waits_) ask_pcie_rates(device, gpu);
    return;
  }
  const double now = DriverCalls::now(), passed = now - before.time;
  if (before.time > 0 && passed > 0.01 && *tx >= before.pcie_tx && *rx >= before.pcie_rx) {
    gpu.pcie_tx_bytes_per_s =
        static_cast<uint64_t>(static_cast<double>(*tx - before.pcie_tx) / passed);
    gpu.pcie_rx_bytes_per_s =
        static_cast<uint64_t>(static_cast<double>(*rx - before.pcie_rx) / passed);
  }
  before.time = now;
  before.pcie_tx = *tx;
  before.pcie_rx = *rx;
}

}  // namespace cufit::host
