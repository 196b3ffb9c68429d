// SPDX-License-Identifier: Apache-2.0
// What could hold a limit of GPU memory on a machine, best first, and for each better one why not and what would make it
// possible. Pure: `cufit run --vram` and `cufit quota plan` ask the machine.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/version.h"
#include "knowledge/knowledge.h"

namespace cufit::resolve {

enum class QuotaBackend { kernel, mig, mps, guard, torch };  // best first
const char* to_string(QuotaBackend backend);                 // as in JSON: "kernel", "guard"

struct QuotaGpu {
  std::string name;  // NVML's or that of data/gpus.toml
  std::optional<ComputeCapability> cc;
  bool mig_instance = false;  // what the process sees is an instance
};

// Facts. nullopt = not known, or (program) none in particular is meant.
struct QuotaMachine {
  std::optional<Version> driver;  // the kernel module's
  std::optional<Version> kernel;  // uname -r
  std::string architecture;       // "x86_64", "aarch64"
  std::vector<QuotaGpu> gpus;     // that a process sees
  bool wsl = false, jetson = false;
  bool cgroup_v2 = false;  // the unified hierarchy is mounted
  std::string accounting;  // controller that counts GPU memory: "dmem", "misc"; empty = none
  bool root = false;
  bool mps_running = false;  // a multi-process server takes clients of this user
  bool mps_program = true;   // nvidia-cuda-mps-control is on PATH; a recording does not say

  // The program: how it takes LD_PRELOAD. none: no program is meant.
  enum class Program {
    none,
    dynamic,
    not_read,
    static_linked,
    musl,
    secure
  } program = Program::none;
  bool guard_off = false;        // CUFIT_GUARD=0
  std::optional<Version> torch;  // that the program would import
  bool fraction_set = false;     // the user's variables hold a fraction already
};

struct BackendVerdict {
  QuotaBackend backend = QuotaBackend::guard;
  // starts: `cufit run --vram` uses it here. possible: the machine has it, cufit does not use it unasked. not: see `why`.
  enum class State { starts, possible, not_possible } state = State::not_possible;
  // Ids: message "quota.why.<backend>_<why>" and "quota.enable.<backend>_<to_enable>"; empty = none.
  std::string why, to_enable;
  std::map<std::string, std::string> args;  // of both
};

// All five, best first.
std::vector<BackendVerdict> quota_backends(const QuotaMachine& machine,
                                           const knowledge::Knowledge& knowledge);

// The first that `cufit run --vram` starts; nullptr: nothing would hold the limit.
const BackendVerdict* chosen_backend(const std::vector<BackendVerdict>& verdicts);

}  // namespace cufit::resolve
