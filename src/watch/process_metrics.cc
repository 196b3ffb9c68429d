// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/format.h"
#include "base/path.h"
#include "watch/metric_table.h"

namespace cufit::watch {
namespace {

constexpr size_t k_short_id = 12;

// "python train.py" of "/opt/conda/bin/python -u /home/ann/train.py --lr 1": a label that tells programs apart and stays the
// same from run to run.
std::string short_command(std::string_view command) {
  std::string out;
  bool after_program = false, is_first = true;
  for (const std::string_view word : split(command, ' ')) {
    if (word.empty()) continue;
    if (!after_program) {
      out = std::string(file_name(word));
      after_program = true;
      continue;
    }
    // The first word, and after options only what cannot be the value of one.
    const bool is_script = ends_with(word, ".py") || ends_with(word, ".sh");
    if (is_first && word == "-m") {
      out += " -m";
      continue;
    }
    if ((is_first && word[0] != '-') || is_script) {
      out += " " + std::string(file_name(word));
      break;
    }
    is_first = false;
  }
  return out;
}

MetricLabels labels_of(const WatchedMachine& machine, const WatchedProcess& process) {
  const facts::ProcessOwner& owner = process.now.owner;
  const facts::SampledGpu& gpu = machine.gpus[process.now.gpu].now;
  const std::string container =
      owner.container_name.empty() ? owner.container.substr(0, k_short_id) : owner.container_name;
  return {{"gpu", std::to_string(gpu.index)},
          {"uuid", gpu.uuid},
          {"pid", std::to_string(process.now.pid)},
          {"user", owner.user},
          {"command", short_command(owner.command)},
          {"container", container},
          {"pod", owner.pod},
          {"namespace", owner.pod_namespace},
          {"job", owner.slurm_job}};
}

// Of the card or of the quota that the process is under, whichever comes first.
std::optional<double> full_in(const WatchedMachine& machine, const MachineState& state,
                              const WatchedProcess& process) {
  std::optional<double> out = process.trend.full_in_s;
  const std::optional<double> slope = process.trend.slope_bytes_per_s;
  if (!out || !slope || *slope <= 0 || process.now.owner.quota.empty()) return out;
  const std::string& uuid = machine.gpus[process.now.gpu].now.uuid;
  for (const facts::LiveDomain& domain : state.quotas.domains) {
    if (domain.path != process.now.owner.quota) continue;
    for (const formats::QuotaDevice& device : domain.domain.devices) {
      if (device.uuid != uuid || device.limit_bytes == formats::k_no_quota) continue;
      const uint64_t left = device.limit_bytes - std::min(device.used_bytes, device.limit_bytes);
      out = std::min(*out, static_cast<double>(left) / *slope);
    }
  }
  return out;
}

}  // namespace

void add_process_metrics(const WatchedMachine& machine, const MachineState& state,
                         const MetricLimits& limits, MetricTable& table) {
  std::vector<const WatchedProcess*> all;
  for (const WatchedProcess& process : machine.processes)
    if (process.now.gpu < machine.gpus.size() && !machine.gpus[process.now.gpu].now.lost)
      all.push_back(&process);
  std::stable_sort(all.begin(), all.end(), [](const WatchedProcess* a, const WatchedProcess* b) {
    return a->now.memory_bytes.value_or(0) > b->now.memory_bytes.value_or(0);
  });
  size_t dropped = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const WatchedProcess& process = *all[i];
    const std::pair<std::string_view, std::optional<double>> values[] = {
        {"cufit_process_memory_bytes", as_number(process.now.memory_bytes)},
        {"cufit_process_memory_slope_bytes_per_second", process.trend.slope_bytes_per_s},
        {"cufit_process_memory_full_seconds", full_in(machine, state, process)},
        {"cufit_process_utilization_ratio", process.now.utilization}};
    for (const auto& [name, value] : values) {
      if (i >= limits.processes)
        dropped += value ? 1 : 0;
      else
        table.add(name, labels_of(machine, process), value);
    }
  }
  table.add("cufit_exporter_series_dropped", {}, static_cast<double>(dropped));
}

}  // namespace cufit::watch
