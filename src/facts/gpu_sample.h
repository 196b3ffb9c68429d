// SPDX-License-Identifier: Apache-2.0
// What the GPUs of a machine do at one moment, and who uses them: one sample of `cufit top`, `exporter` and `watch`. A value
// that a card does not have, or that nobody may read, is absent; why is said in `missing`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cufit::facts {

// A value that was asked for and not told.
struct MissingValue {
  std::string what;  // "gpu 0: temperature_c", "processes"
  std::string why;   // in the words of who refused: "Not Supported (3)"
};

// To whom the kubelet gave a GPU.
struct SampledPod {
  std::string pod_namespace, pod, container;
};

// A GPU, or an instance of a divided one: then its GPU has no row of its own for memory and processes.
struct SampledGpu {
  uint32_t index = 0;       // NVML's
  std::string uuid, name;   // of the instance, where it is one
  std::string pci;          // "0000:01:00.0"
  std::string profile;      // of an instance: "1g.10gb"; else empty
  std::string parent_uuid;  // of an instance: its GPU's
  std::optional<uint32_t>
      gpu_instance;  // of an instance: NVML's number of the GPU instance it is in
  std::optional<int>
      lost;  // nvmlReturn_t by which the GPU itself refuses: 15 lost, 16 needs a reset
  std::optional<uint64_t> memory_total_bytes, memory_used_bytes, memory_free_bytes;
  std::optional<uint64_t> memory_reserved_bytes;  // by the driver; not in `used`
  std::optional<double> utilization;              // 0 to 1: part of the time in which a kernel ran
  std::optional<double>
      memory_utilization;  // 0 to 1: part of the time in which memory was read or written
  std::optional<double> power_watts, power_limit_watts;
  std::optional<double> energy_joules;  // since the driver was loaded
  std::optional<int32_t> temperature_c, memory_temperature_c;
  std::optional<int32_t> slowdown_temperature_c;  // at which the hardware slows itself down
  std::optional<double> fan;                      // 0 to 1
  std::optional<uint32_t> sm_clock_mhz, sm_clock_max_mhz, memory_clock_mhz, memory_clock_max_mhz;
  // Reasons now active: "hw_thermal_slowdown", as in facts.h; idle is none.
  std::optional<std::vector<std::string>> throttle;
  // Nanoseconds since the driver was loaded: by the power limit, by temperature.
  std::optional<uint64_t> power_violation_ns, thermal_violation_ns;
  std::optional<uint64_t> pcie_rx_bytes_per_s, pcie_tx_bytes_per_s;
  std::optional<uint32_t> pcie_gen, pcie_gen_max, pcie_width, pcie_width_max;
  std::optional<uint64_t> pcie_replays;
  std::optional<uint32_t> nvlinks, nvlinks_active;
  std::optional<uint64_t> nvlink_rx_bytes,
      nvlink_tx_bytes;  // of all links, since the driver was loaded
  std::optional<uint64_t> ecc_corrected, ecc_uncorrected;            // since boot
  std::optional<uint64_t> remapped_corrected, remapped_uncorrected;  // rows
  std::optional<bool> remap_pending, remap_failed;
  std::optional<std::string> compute_mode;
  // Absent: no kubelet told; empty: to none. Several share it, or their containers do. It need not be used.
  std::optional<std::vector<SampledPod>> pods;
};

// Who a process belongs to, as far as this user may read.
struct ProcessOwner {
  bool visible = false;  // it is in /proc of this pid namespace
  std::optional<uint32_t> uid;
  uint32_t parent = 0;  // pid of who started it
  std::string user;     // name of it; empty: none
  // Its words, blanks between, "***" for secrets; "[python]" where it has none (it is ending); empty: not readable.
  std::string command;
  std::optional<double> started;  // seconds since the epoch
  // Of a container: "docker", "containerd", "cri-o", "podman", "lxc", "nspawn"; empty with one: not told.
  std::string runtime;
  std::string container;  // its id, 64 digits; "lxc" and "nspawn" have a `container_name` alone
  std::string container_name;
  std::string pod_uid, pod, pod_namespace;
  std::string slurm_job, slurm_step;
  std::string unit;                // systemd's: "train.service", "session-3.scope"
  std::string quota;               // file of cufit's quota domain
  std::string environment;         // class of the lock that `cufit run` chose
  std::string python_environment;  // VIRTUAL_ENV or CONDA_PREFIX
};

// A process on a GPU: one row for each GPU that it uses.
struct SampledProcess {
  uint32_t gpu = 0;  // place in GpuSample::gpus
  uint32_t pid = 0;  // in this pid namespace
  std::string kind;  // "compute" or "graphics"
  std::optional<uint64_t> memory_bytes;
  std::optional<double> utilization;  // 0 to 1, since the last sample
  ProcessOwner owner;
};

// One Xid of the driver.
struct SampledXid {
  std::string pci;  // "0000:01:00"
  uint32_t number = 0;
  uint64_t count = 0;  // since boot where the kernel's log tells, else since the sampler began
};

struct GpuSample {
  double time = 0;  // seconds since the epoch
  std::string driver_version;
  std::vector<SampledGpu> gpus;
  std::vector<SampledProcess> processes;
  std::vector<SampledXid> xids;
  std::vector<MissingValue> missing;
  double driver_seconds = 0;  // that the driver took for it
  // The driver did not answer since: then all above is the last good sample.
  std::optional<double> stalled_seconds;
  std::string stalled_call;  // in which function
  std::string
      stalled_end;  // how the process that asked it ended there: "signal 11"; empty: it hangs
};

}  // namespace cufit::facts
