// SPDX-License-Identifier: Apache-2.0
#include "commands/watch/machine_state.h"

#include "base/format.h"
#include "checks/fact_view.h"
#include "host/probe.h"
#include "host/process/signal_pause.h"
#include "host/quota/domain_files.h"

namespace cufit::commands {
namespace {

constexpr double k_driver_seconds = 60;

// GPUs that the nvidia module has, or should have: not those that are given to a virtual machine.
uint32_t gpus_for_nvidia(const facts::Facts& facts) {
  uint32_t count = 0;
  for (const facts::PciGpu* gpu : checks::pci_gpus(facts))
    if (!gpu->driver || *gpu->driver == "nvidia") ++count;
  return count;
}

}  // namespace

MachineStateReader::MachineStateReader(const Context& context) : context_(context) {
  facts::Facts facts;
  host::read_system(context.machine, facts);
  sees_all_gpus_ = facts.system.container && *facts.system.container == "none";
}

void MachineStateReader::read_driver() {
  facts::Facts facts;
  host::read_pci(context_.machine, facts);
  host::read_kernel_driver(context_.machine, facts);
  host::read_driver_libraries(context_.machine, facts);
  state_.gpus_on_bus.reset();
  if (sees_all_gpus_ && facts.pci) state_.gpus_on_bus = gpus_for_nvidia(facts);
  state_.kernel_driver = facts.kernel.version.value_or("");
  state_.library_version.clear();
  for (const facts::DriverLibrary& library : facts.driver_libraries)
    if (library.loads && starts_with(library.soname, "libnvidia-ml.so"))
      state_.library_version = library.version;
}

const watch::MachineState& MachineStateReader::read() {
  const double now = host::running_seconds();
  if (read_at_ == 0 || now - read_at_ >= k_driver_seconds) {
    read_driver();
    read_at_ = now;
  }
  state_.quotas = host::read_quota_domains(context_.machine);
  return state_;
}

}  // namespace cufit::commands
