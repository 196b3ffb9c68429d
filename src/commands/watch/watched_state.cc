// SPDX-License-Identifier: Apache-2.0
#include "commands/watch/watched_state.h"

#include "base/format.h"
#include "host/probe.h"
#include "host/quota/domain_files.h"

namespace cufit::commands {
namespace {

constexpr double k_read_again_s = 10;

// Those that the nvidia driver has or nobody: one of nouveau or of a virtual machine is no missing GPU. A container is given
// some of the GPUs and sees all of the bus.
std::optional<uint32_t> gpus_on_bus(const facts::Facts& facts) {
  if (!facts.pci || !facts.system.container || *facts.system.container.value != "none")
    return std::nullopt;
  uint32_t out = 0;
  for (const facts::PciGpu& gpu : *facts.pci.value) {
    const bool is_gpu = starts_with(gpu.class_code, "03");
    if (is_gpu && (!gpu.driver || *gpu.driver.value == "nvidia")) ++out;
  }
  return out;
}

}  // namespace

const watch::MachineState& WatchedState::at(double now, const std::string& library_version) {
  state_.library_version = library_version;
  if (now - read_at_ < k_read_again_s) return state_;
  read_at_ = now;
  facts::Facts facts;
  host::read_system(context_.machine, facts);
  host::read_pci(context_.machine, facts);
  host::read_kernel_driver(context_.machine, facts);
  state_.gpus_on_bus = gpus_on_bus(facts);
  state_.kernel_driver = facts.kernel.version ? *facts.kernel.version.value : "";
  state_.quotas = host::read_quota_domains(context_.machine);
  return state_;
}

}  // namespace cufit::commands
