// SPDX-License-Identifier: Apache-2.0
#include "resolve/quota/quota_machine.h"

#include <algorithm>

#include "base/format.h"
#include "resolve/wheel/target.h"

namespace cufit::resolve {
namespace {

bool is_instance(const facts::CudaDevice& device) {
  return device.uuid && starts_with(*device.uuid, "MIG-");
}

// dmem before misc: a kernel that has both counts GPU memory in the first.
std::string accounting_of(std::string_view controllers) {
  std::string out;
  for (std::string_view name : split(trim(controllers), ' '))
    if (name == "dmem" || (name == "misc" && out.empty())) out = name;
  return out;
}

std::string accounting_of_kernel(const std::optional<Version>& kernel,
                                 const knowledge::Knowledge& knowledge) {
  const std::optional<Version> dmem = parse_version(knowledge.quota_since("kernel_dmem"));
  return kernel && dmem && *kernel >= *dmem ? "dmem" : "misc";
}

}  // namespace

QuotaMachine quota_machine(const facts::Facts& facts, const knowledge::Knowledge& knowledge,
                           std::optional<std::string_view> controllers) {
  const Target target = target_of(facts, knowledge, "");
  QuotaMachine out;
  out.driver = target.driver;
  if (facts.system.kernel) out.kernel = parse_version(*facts.system.kernel);
  out.architecture = facts.system.architecture.value_or("");
  // A recording of NVML alone tells instances as well.
  const bool instance =
      std::any_of(facts.cuda.devices.begin(), facts.cuda.devices.end(), is_instance) ||
      (facts.cuda.devices.empty() &&
       std::any_of(facts.nvml.gpus.begin(), facts.nvml.gpus.end(),
                   [](const facts::NvmlGpu& gpu) { return !gpu.mig_instances.empty(); }));
  for (const TargetGpu& gpu : target.gpus) out.gpus.push_back({gpu.name, gpu.cc, instance});
  for (const std::string& name : target.unknown_gpus) out.gpus.push_back({name, {}, instance});
  out.wsl = target.wsl;
  out.jetson = target.jetson;
  out.cgroup_v2 = facts.system.cgroup.value_or("") == "v2";
  if (controllers)
    out.accounting = accounting_of(*controllers);
  else if (out.cgroup_v2)
    out.accounting = accounting_of_kernel(out.kernel, knowledge);
  out.root = facts.system.root.value_or(false);
  for (const facts::PythonEnv& env : facts.envs)  // the active one first
    if (!out.torch && env.torch.version) out.torch = parse_version(*env.torch.version);
  for (const facts::EnvVariable& variable : facts.variables)
    if (contains(variable.value, "per_process_memory_fraction")) out.fraction_set = true;
  return out;
}

std::vector<QuotaCard> quota_cards(const facts::Facts& facts,
                                   const knowledge::Knowledge& knowledge) {
  std::vector<QuotaCard> out;
  for (const facts::CudaDevice& device : facts.cuda.devices) {
    QuotaCard card;
    card.name = device.name.value_or("");
    card.uuid = device.uuid.value_or("");
    card.pci = device.pci_address.value_or("");
    card.total_bytes = device.memory_total_bytes.value_or(0);
    card.least_bytes = knowledge.quota_size_bytes("least_context");
    card.context_bytes = knowledge.context_bytes(device.compute_capability.value_or(""));
    out.push_back(std::move(card));
  }
  return out;
}

}  // namespace cufit::resolve
