// SPDX-License-Identifier: Apache-2.0
// The GPUs that a process started now would see, as a target to route by: from files where they
// tell (host/launch_facts.h), else from the driver's answer, kept for the next launch
// (host/answer_cache.h). Used by `cufit run` and `cufit preflight`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/host.h"
#include "resolve/target.h"

namespace cufit::resolve {

struct LiveOptions {
  bool may_ask_driver = true;
  double driver_timeout_seconds = 10;
};

struct VisibleGpu {
  std::string name;
  std::optional<ComputeCapability> cc;
  std::string uuid;              // empty = not told
  std::optional<size_t> number;  // with CUDA_DEVICE_ORDER=PCI_BUS_ID; nullopt = not known
};

struct LiveTarget {
  // gpus: there are some. none: this process has no GPU, and that is plain. unclear: a GPU is there
  // or was asked for, and why it cannot be used has to be found first; no class may be chosen.
  // not_told: only the driver knows, and it may not be asked.
  enum class Sight { gpus, none, unclear, not_told } sight = Sight::none;
  Target target;
  std::vector<VisibleGpu> gpus;
  enum class By { files, cache, driver } by = By::files;
  std::string asked_because;  // id of host::Visibility::ask, or "pci_id"; empty = files tell
  // none and unclear: message "run.sight.<reason>" with args. Ids: no_driver, gpu_without_driver,
  // not_given, hidden | no_libcuda, unmatched, no_device, driver_code, driver_silent.
  std::string reason;
  std::map<std::string, std::string> args;
};

LiveTarget live_target(const host::Host& host, const LiveOptions& options,
                       const knowledge::Knowledge& knowledge);

}  // namespace cufit::resolve
