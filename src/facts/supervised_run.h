// SPDX-License-Identifier: Apache-2.0
// How a program that `cufit run` started ended: its exit, its last output, and the memory of the
// GPUs and of the host right before. Filled by host/process/supervise, told by report/crash_report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cufit::facts {

// Why a program could not be started, with the exit code that a shell gives: 127 not found, 126
// found but not to be executed. Reasons, for messages "run.start.<reason>": not_found, directory,
// no_permission, interpreter (the one of its first line is missing), format, other.
struct StartFailure {
  int exit_code = 127;
  std::string reason;
  std::string program;  // what was looked for or found
  std::string detail;   // the interpreter, or the system's words
};

struct GpuMemory {
  uint32_t index = 0;  // NVML's: by PCI address
  std::string name;
  uint64_t used_bytes = 0, total_bytes = 0;
};

struct MemoryKills {
  // "oom_kill" of this process's own cgroup: memory.events (v2) or memory.oom_control (v1).
  std::optional<uint64_t> cgroup;
  std::string cgroup_file;
  std::optional<uint64_t> machine;  // "oom_kill" of /proc/vmstat (Linux 4.13 on)
};

struct HostMemory {
  uint64_t total_bytes = 0, available_bytes = 0;  // MemTotal and MemAvailable of /proc/meminfo
};

struct Supervised {
  std::optional<StartFailure> not_started;
  int pid = 0;
  int exit_code = 0;          // 128 + signal where one ended it
  int signal = 0;             // 0 = it ended by itself
  bool asked_to_end = false;  // SIGINT, SIGTERM, SIGHUP or SIGQUIT came while it ran
  double seconds = 0;
  std::string tail;               // of stdout and stderr as they came, from a line's begin on
  uint64_t output_bytes = 0;      // of all of it
  std::vector<GpuMemory> memory;  // the fullest of the last ten seconds
  double memory_age_seconds = 0;  // before the end
  MemoryKills kills_before, kills_after;
  std::optional<HostMemory> host_memory;  // the last sample of four a second
  double host_memory_age_seconds = 0;     // before the end
};

}  // namespace cufit::facts
