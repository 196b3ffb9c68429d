// SPDX-License-Identifier: Apache-2.0
// The members of a sample, once, for its JSON: recordings of `cufit top --record` and what the sampler's child tells.
#pragma once

#include <concepts>
#include <type_traits>

#include "facts/gpu_sample.h"

namespace cufit::facts {

template <class V, class T>
requires std::same_as<std::remove_const_t<T>, MissingValue>
void visit_sample(V& v, T& x) { v("what", x.what), v("why", x.why); }

template <class V, class T>
requires std::same_as<std::remove_const_t<T>, SampledPod>
void visit_sample(V& v, T& x) {
  v("pod_namespace", x.pod_namespace), v("pod", x.pod), v("container", x.container);
}

template <class V, class T>
requires std::same_as<std::remove_const_t<T>, SampledGpu>
void visit_sample(V& v, T& x) {
  v("index", x.index), v("uuid", x.uuid), v("name", x.name), v("pci", x.pci);
  v("profile", x.profile), v("parent_uuid", x.parent_uuid);
  v("gpu_instance", x.gpu_instance), v("lost", x.lost);
  v("memory_total_bytes", x.memory_total_bytes), v("memory_used_bytes", x.memory_used_bytes);
  v("memory_free_bytes", x.memory_free_bytes), v("memory_reserved_bytes", x.memory_reserved_bytes);
  v("utilization", x.utilization), v("memory_utilization", x.memory_utilization);
  v("power_watts", x.power_watts), v("power_limit_watts", x.power_limit_watts);
  v("energy_joules", x.energy_joules), v("temperature_c", x.temperature_c);
  v("memory_temperature_c", x.memory_temperature_c);
  v("slowdown_temperature_c", x.slowdown_temperature_c), v("fan", x.fan);
  v("sm_clock_mhz", x.sm_clock_mhz), v("sm_clock_max_mhz", x.sm_clock_max_mhz);
  v("memory_clock_mhz", x.memory_clock_mhz), v("memory_clock_max_mhz", x.memory_clock_max_mhz);
  v("throttle", x.throttle), v("power_violation_ns", x.power_violation_ns);
  v("thermal_violation_ns", x.thermal_violation_ns);
  v("pcie_rx_bytes_per_s", x.pcie_rx_bytes_per_s), v("pcie_tx_bytes_per_s", x.pcie_tx_bytes_per_s);
  v("pcie_gen", x.pcie_gen), v("pcie_gen_max", x.pcie_gen_max), v("pcie_width", x.pcie_width);
  v("pcie_width_max", x.pcie_width_max), v("pcie_replays", x.pcie_replays);
  v("nvlinks", x.nvlinks), v("nvlinks_active", x.nvlinks_active);
  v("nvlink_rx_bytes", x.nvlink_rx_bytes), v("nvlink_tx_bytes", x.nvlink_tx_bytes);
  v("ecc_corrected", x.ecc_corrected), v("ecc_uncorrected", x.ecc_uncorrected);
  v("remapped_corrected", x.remapped_corrected), v("remapped_uncorrected", x.remapped_uncorrected);
  v("remap_pending", x.remap_pending), v("remap_failed", x.remap_failed);
  v("compute_mode", x.compute_mode), v("pods", x.pods);
}

template <class V, class T>
requires std::same_as<std::remove_const_t<T>, ProcessOwner>
void visit_sample(V& v, T& x) {
  v("visible", x.visible), v("uid", x.uid), v("parent", x.parent), v("user", x.user),
      v("command", x.command);
  v("started", x.started), v("runtime", x.runtime), v("container", x.container);
  v("container_name", x.container_name), v("pod_uid", x.pod_uid), v("pod", x.pod);
  v("pod_namespace", x.pod_namespace), v("slurm_job", x.slurm_job), v("slurm_step", x.slurm_step);
  v("unit", x.unit), v("quota", x.quota), v("environment", x.environment);
  v("python_environment", x.python_environment);
}

template <class V, class T>
requires std::same_as<std::remove_const_t<T>, SampledProcess>
void visit_sample(V& v, T& x) {
  v("gpu", x.gpu), v("pid", x.pid), v("kind", x.kind), v("memory_bytes", x.memory_bytes);
  v("utilization", x.utilization), v("owner", x.owner);
}

template <class V, class T>
requires std::same_as<std::remove_const_t<T>, SampledXid>
void visit_sample(V& v, T& x) { v("pci", x.pci), v("number", x.number), v("count", x.count); }

template <class V, class T>
requires std::same_as<std::remove_const_t<T>, GpuSample>
void visit_sample(V& v, T& x) {
  v("time", x.time), v("driver_version", x.driver_version), v("gpus", x.gpus);
  v("processes", x.processes), v("xids", x.xids), v("missing", x.missing);
  v("driver_seconds", x.driver_seconds), v("stalled_seconds", x.stalled_seconds);
  v("stalled_call", x.stalled_call), v("stalled_end", x.stalled_end);
}

}  // namespace cufit::facts
