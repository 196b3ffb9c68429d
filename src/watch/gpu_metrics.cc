// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "base/format.h"
#include "watch/metric_table.h"

namespace cufit::watch {
namespace {

constexpr double k_hertz_of_mhz = 1e6;

std::optional<double> hertz(std::optional<uint32_t> mhz) {
  if (!mhz) return std::nullopt;
  return *mhz * k_hertz_of_mhz;
}

// The metrics of one GPU or instance: all have its labels.
class OneGpu {
 public:
  OneGpu(const WatchedGpu& gpu, MetricTable& table)
      : table_(table),
        labels_{{"gpu", std::to_string(gpu.now.index)},
                {"uuid", gpu.now.uuid},
                {"profile", gpu.now.profile}} {}

  void add(std::string_view name, std::optional<double> value) const {
    table_.add(name, labels_, value);
  }
  void add(std::string_view name, std::string_view label, std::string value_of_label,
           std::optional<double> value) const {
    MetricLabels labels = labels_;
    labels.emplace_back(label, std::move(value_of_label));
    table_.add(name, std::move(labels), value);
  }
  const MetricLabels& labels() const { return labels_; }

 private:
  MetricTable& table_;
  MetricLabels labels_;
};

void add_memory(const WatchedGpu& gpu, const OneGpu& one) {
  one.add("cufit_gpu_memory_total_bytes", as_number(gpu.now.memory_total_bytes));
  one.add("cufit_gpu_memory_used_bytes", as_number(gpu.now.memory_used_bytes));
  one.add("cufit_gpu_memory_free_bytes", as_number(gpu.now.memory_free_bytes));
  one.add("cufit_gpu_memory_reserved_bytes", as_number(gpu.now.memory_reserved_bytes));
  one.add("cufit_gpu_memory_unattributed_bytes", as_number(gpu.unowned_bytes));
}

void add_load(const facts::SampledGpu& gpu, const OneGpu& one) {
  one.add("cufit_gpu_utilization_ratio", gpu.utilization);
  one.add("cufit_gpu_memory_utilization_ratio", gpu.memory_utilization);
  one.add("cufit_gpu_power_watts", gpu.power_watts);
  one.add("cufit_gpu_power_limit_watts", gpu.power_limit_watts);
  one.add("cufit_gpu_energy_joules_total", gpu.energy_joules);
  one.add("cufit_gpu_temperature_celsius", "sensor", "gpu", as_number(gpu.temperature_c));
  one.add("cufit_gpu_temperature_celsius", "sensor", "memory", as_number(gpu.memory_temperature_c));
  one.add("cufit_gpu_slowdown_temperature_celsius", as_number(gpu.slowdown_temperature_c));
  one.add("cufit_gpu_fan_ratio", gpu.fan);
  one.add("cufit_gpu_clock_hertz", "clock", "sm", hertz(gpu.sm_clock_mhz));
  one.add("cufit_gpu_clock_hertz", "clock", "memory", hertz(gpu.memory_clock_mhz));
  one.add("cufit_gpu_clock_max_hertz", "clock", "sm", hertz(gpu.sm_clock_max_mhz));
  one.add("cufit_gpu_clock_max_hertz", "clock", "memory", hertz(gpu.memory_clock_max_mhz));
}

void add_links(const facts::SampledGpu& gpu, const OneGpu& one) {
  one.add("cufit_gpu_pcie_receive_bytes_per_second", as_number(gpu.pcie_rx_bytes_per_s));
  one.add("cufit_gpu_pcie_transmit_bytes_per_second", as_number(gpu.pcie_tx_bytes_per_s));
  one.add("cufit_gpu_pcie_link_generation", as_number(gpu.pcie_gen));
  one.add("cufit_gpu_pcie_link_generation_max", as_number(gpu.pcie_gen_max));
  one.add("cufit_gpu_pcie_link_width", as_number(gpu.pcie_width));
  one.add("cufit_gpu_pcie_link_width_max", as_number(gpu.pcie_width_max));
  one.add("cufit_gpu_pcie_replays_total", as_number(gpu.pcie_replays));
  one.add("cufit_gpu_nvlinks", as_number(gpu.nvlinks));
  one.add("cufit_gpu_nvlinks_active", as_number(gpu.nvlinks_active));
  one.add("cufit_gpu_nvlink_receive_bytes_total", as_number(gpu.nvlink_rx_bytes));
  one.add("cufit_gpu_nvlink_transmit_bytes_total", as_number(gpu.nvlink_tx_bytes));
}

void add_errors(const facts::SampledGpu& gpu, const OneGpu& one) {
  one.add("cufit_ecc_errors_total", "kind", "corrected", as_number(gpu.ecc_corrected));
  one.add("cufit_ecc_errors_total", "kind", "uncorrected", as_number(gpu.ecc_uncorrected));
  one.add("cufit_remapped_rows", "kind", "corrected", as_number(gpu.remapped_corrected));
  one.add("cufit_remapped_rows", "kind", "uncorrected", as_number(gpu.remapped_uncorrected));
  one.add("cufit_remap_pending", as_number(gpu.remap_pending));
  one.add("cufit_remap_failed", as_number(gpu.remap_failed));
}

// Every reason from the start: of a series that begins above 0, rate() does not see the beginning.
void add_throttle(const WatchedGpu& gpu, const OneGpu& one, const knowledge::Knowledge& knowledge) {
  constexpr std::string_view k_name = "cufit_throttle_seconds_total";
  if (!gpu.throttle_seconds) return;
  std::map<std::string, double> seconds = *gpu.throttle_seconds;
  for (const knowledge::MetricRow& row : knowledge.metrics)
    if (row.name == k_name)
      for (const std::string_view reason : split(row.values, ' '))
        if (!reason.empty()) seconds.emplace(std::string(reason), 0);
  for (const auto& [reason, passed] : seconds) one.add(k_name, "reason", reason, passed);
}

// Whose number is known though it is listed no more. The numbers that raise alarms are there from the start, for the same
// reason as above.
void add_xids(const WatchedMachine& machine, MetricTable& table,
              const knowledge::Knowledge& knowledge) {
  std::map<std::pair<std::string, uint32_t>, double> counts;  // by PCI address and number
  for (const KnownGpu& gpu : machine.known_gpus)
    for (const knowledge::AlertXid& row : knowledge.alert_xids) counts[{gpu.pci, row.number}] = 0;
  for (const facts::SampledXid& xid : machine.xids) {
    std::string pci = xid.pci;
    for (const KnownGpu& gpu : machine.known_gpus)
      if (!xid.pci.empty() && starts_with(gpu.pci, xid.pci)) pci = gpu.pci;
    counts[{pci, xid.number}] += static_cast<double>(xid.count);
  }
  std::map<uint32_t, double> of_nobody;
  for (const auto& entry : counts) {
    const auto& [pci, number] = entry.first;
    const std::string& address = pci;
    const auto known = std::find_if(machine.known_gpus.begin(), machine.known_gpus.end(),
                                    [&](const KnownGpu& gpu) { return gpu.pci == address; });
    if (known == machine.known_gpus.end()) {
      of_nobody[number] += entry.second;
      continue;
    }
    table.add("cufit_xid_errors_total",
              {{"gpu", std::to_string(known->index)},
               {"uuid", known->uuid},
               {"xid", std::to_string(number)}},
              entry.second);
  }
  for (const auto& [number, count] : of_nobody)
    table.add("cufit_xid_errors_total", {{"xid", std::to_string(number)}}, count);
}

void add_pods(const facts::SampledGpu& gpu, const OneGpu& one, MetricTable& table) {
  if (!gpu.pods) return;
  for (const facts::SampledPod& pod : *gpu.pods) {
    MetricLabels labels = one.labels();
    labels.insert(
        labels.end(),
        {{"container", pod.container}, {"pod", pod.pod}, {"namespace", pod.pod_namespace}});
    table.add("cufit_gpu_pod_info", std::move(labels), 1);
  }
}

void add_lost(const WatchedMachine& machine, MetricTable& table) {
  for (const KnownGpu& known : machine.known_gpus) {
    bool lost = !known.listed;
    for (const WatchedGpu& gpu : machine.gpus)
      if (gpu.now.parent_uuid.empty() && gpu.now.pci == known.pci) lost = gpu.now.lost.has_value();
    table.add("cufit_gpu_lost", {{"gpu", std::to_string(known.index)}, {"uuid", known.uuid}},
              lost ? 1 : 0);
  }
}

}  // namespace

void add_gpu_metrics(const WatchedMachine& machine, MetricTable& table,
                     const knowledge::Knowledge& knowledge) {
  for (size_t i = 0; i < machine.gpus.size(); ++i) {
    const WatchedGpu& gpu = machine.gpus[i];
    const OneGpu one(gpu, table);
    MetricLabels info = one.labels();
    info.insert(info.end() - 1, {{"name", gpu.now.name}, {"pci", gpu.now.pci}});
    info.emplace_back("driver", machine.driver_version);
    table.add("cufit_gpu_info", std::move(info), 1);
    if (gpu.now.lost) continue;  // what it still says is of before, or nonsense
    // The memory of a divided GPU is its instances': in a sum it would be there twice.
    const bool divided = i + 1 < machine.gpus.size() && !gpu.now.uuid.empty() &&
                         machine.gpus[i + 1].now.parent_uuid == gpu.now.uuid;
    if (!divided) add_memory(gpu, one);
    add_load(gpu.now, one);
    add_links(gpu.now, one);
    add_errors(gpu.now, one);
    add_throttle(gpu, one, knowledge);
    add_pods(gpu.now, one, table);
  }
  add_xids(machine, table, knowledge);
  add_lost(machine, table);
}

}  // namespace cufit::watch
