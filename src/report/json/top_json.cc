// SPDX-License-Identifier: Apache-2.0
// Schema cufit.top/1. Members may be added within the schema's version, none is renamed or removed.
#include "report/json/json_value.h"
#include "report/top.h"

namespace cufit::report {
namespace {

template <class T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json pods_json(const std::optional<std::vector<facts::SampledPod>>& pods) {
  if (!pods) return nullptr;
  Json out = Json::array();
  for (const facts::SampledPod& pod : *pods)
    out.push_back(
        {{"namespace", pod.pod_namespace}, {"pod", pod.pod}, {"container", pod.container}});
  return out;
}

Json gpu_json(const watch::WatchedGpu& watched, bool stale) {
  const facts::SampledGpu& gpu = watched.now;
  Json out;
  out["index"] = gpu.index;
  out["uuid"] = or_null(gpu.uuid);
  out["name"] = or_null(gpu.name);
  out["memory_used_bytes"] = value_or_null(gpu.memory_used_bytes);
  out["memory_total_bytes"] = value_or_null(gpu.memory_total_bytes);
  out["utilization"] = value_or_null(gpu.utilization);
  out["power_watts"] = value_or_null(gpu.power_watts);
  out["temperature_c"] = value_or_null(gpu.temperature_c);
  out["throttle"] = value_or_null(gpu.throttle);
  out["stale"] = stale;
  out["pci"] = or_null(gpu.pci);
  out["profile"] = or_null(gpu.profile);
  out["parent_uuid"] = or_null(gpu.parent_uuid);
  out["lost"] = value_or_null(gpu.lost);
  out["memory_free_bytes"] = value_or_null(gpu.memory_free_bytes);
  out["memory_reserved_bytes"] = value_or_null(gpu.memory_reserved_bytes);
  out["memory_unowned_bytes"] = value_or_null(watched.unowned_bytes);
  out["memory_utilization"] = value_or_null(gpu.memory_utilization);
  out["power_limit_watts"] = value_or_null(gpu.power_limit_watts);
  out["energy_joules"] = value_or_null(gpu.energy_joules);
  out["memory_temperature_c"] = value_or_null(gpu.memory_temperature_c);
  out["slowdown_temperature_c"] = value_or_null(gpu.slowdown_temperature_c);
  out["fan"] = value_or_null(gpu.fan);
  out["sm_clock_mhz"] = value_or_null(gpu.sm_clock_mhz);
  out["sm_clock_max_mhz"] = value_or_null(gpu.sm_clock_max_mhz);
  out["memory_clock_mhz"] = value_or_null(gpu.memory_clock_mhz);
  out["memory_clock_max_mhz"] = value_or_null(gpu.memory_clock_max_mhz);
  out["pcie_gen"] = value_or_null(gpu.pcie_gen);
  out["pcie_gen_max"] = value_or_null(gpu.pcie_gen_max);
  out["pcie_width"] = value_or_null(gpu.pcie_width);
  out["pcie_width_max"] = value_or_null(gpu.pcie_width_max);
  out["pcie_rx_bytes_per_s"] = value_or_null(gpu.pcie_rx_bytes_per_s);
  out["pcie_tx_bytes_per_s"] = value_or_null(gpu.pcie_tx_bytes_per_s);
  out["pcie_replays"] = value_or_null(gpu.pcie_replays);
  out["nvlinks"] = value_or_null(gpu.nvlinks);
  out["nvlinks_active"] = value_or_null(gpu.nvlinks_active);
  out["ecc_corrected"] = value_or_null(gpu.ecc_corrected);
  out["ecc_uncorrected"] = value_or_null(gpu.ecc_uncorrected);
  out["remap_pending"] = value_or_null(gpu.remap_pending);
  out["remap_failed"] = value_or_null(gpu.remap_failed);
  out["pods"] = pods_json(gpu.pods);
  return out;
}

const char* name_of(watch::MemoryTrend::State state) {
  static const char* const k_names[] = {"too_short", "steady", "stepping", "growing"};
  return k_names[static_cast<int>(state)];
}

Json top_process_json(const watch::WatchedProcess& watched, const watch::WatchedMachine& machine) {
  const facts::SampledProcess& process = watched.now;
  const facts::ProcessOwner& owner = process.owner;
  const watch::MemoryTrend& trend = watched.trend;
  Json out;
  out["gpu"] = machine.gpus[process.gpu].now.index;
  out["pid"] = process.pid;
  out["user"] = or_null(owner.user);
  out["container"] = or_null(owner.container);
  out["pod"] = or_null(owner.pod);
  out["job"] = or_null(owner.slurm_job);
  out["memory_bytes"] = value_or_null(process.memory_bytes);
  out["slope_bytes_per_s"] = value_or_null(trend.slope_bytes_per_s);
  out["full_in_s"] = value_or_null(trend.full_in_s);
  out["command"] = or_null(owner.command);
  out["full_in_s_early"] = value_or_null(trend.full_in_s_early);
  out["full_in_s_late"] = value_or_null(trend.full_in_s_late);
  out["trend"] = name_of(trend.state);
  out["gpu_uuid"] = or_null(machine.gpus[process.gpu].now.uuid);
  out["kind"] = process.kind;
  out["utilization"] = value_or_null(process.utilization);
  out["visible"] = owner.visible;
  out["uid"] = value_or_null(owner.uid);
  out["started"] = value_or_null(owner.started);
  out["container_name"] = or_null(owner.container_name);
  out["container_runtime"] = or_null(owner.runtime);
  out["namespace"] = or_null(owner.pod_namespace);
  out["step"] = or_null(owner.slurm_step);
  out["unit"] = or_null(owner.unit);
  out["quota"] = or_null(owner.quota);
  out["environment"] = or_null(owner.environment);
  out["python_environment"] = or_null(owner.python_environment);
  return out;
}

}  // namespace

std::string top_json(const watch::WatchedMachine& machine, const knowledge::Knowledge& knowledge) {
  Json out;
  out["schema"] = "cufit.top/1";
  out["cufit"] = CUFIT_VERSION;
  put_tables(out, knowledge);
  out["time"] = machine.time;
  out["driver_version"] = or_null(machine.driver_version);
  out["gpus"] = Json::array();
  for (const watch::WatchedGpu& gpu : machine.gpus)
    out["gpus"].push_back(gpu_json(gpu, machine.stalled_seconds.has_value()));
  out["processes"] = Json::array();
  for (const watch::WatchedProcess& process : machine.processes)
    out["processes"].push_back(top_process_json(process, machine));
  out["xids"] = Json::array();
  for (const facts::SampledXid& xid : machine.xids)
    out["xids"].push_back({{"pci", xid.pci}, {"number", xid.number}, {"count", xid.count}});
  out["missing"] = Json::array();
  for (const facts::MissingValue& missing : machine.missing)
    out["missing"].push_back({{"what", missing.what}, {"why", missing.why}});
  out["stalled_seconds"] = value_or_null(machine.stalled_seconds);
  out["stalled_call"] = machine.stalled_seconds ? or_null(machine.stalled_call) : Json(nullptr);
  out["stalled_end"] = machine.stalled_seconds ? or_null(machine.stalled_end) : Json(nullptr);
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
