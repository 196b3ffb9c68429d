// SPDX-License-Identifier: Apache-2.0
// The GPUs that a process started now would see, as a target to route by: judged from what files
// say (facts/visible_gpus.h), or from the driver's answer. Pure; commands/run/find_live_target asks.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "facts/visible_gpus.h"
#include "resolve/wheel/target.h"

namespace cufit::resolve {

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
  std::string asked_because;  // id of facts::Visibility::ask, or "pci_id"; empty = files tell
  // none and unclear: message "run.sight.<reason>" with args. Ids: no_driver, gpu_without_driver,
  // not_given, hidden | no_libcuda, unmatched, no_device, driver_code, driver_silent.
  std::string reason;
  std::map<std::string, std::string> args;
};

// Why only the driver knows which GPUs there are; empty where the files tell.
std::string reason_to_ask(const facts::GpuAccess& access, const facts::Visibility& visible,
                          const knowledge::Knowledge& knowledge);

// Facts that hold the PCI bus alone; called only where no libcuda would load.
using PciBus = std::function<facts::Facts()>;
LiveTarget target_from_files(const facts::GpuAccess& access, const facts::Visibility& visible,
                             const PciBus& pci_bus, const knowledge::Knowledge& knowledge);

// What the driver said that it shows; its PCI functions only where it named them.
LiveTarget target_from_answer(const facts::GpuAccess& access, facts::Facts answer,
                              const knowledge::Knowledge& knowledge);

}  // namespace cufit::resolve
