// SPDX-License-Identifier: Apache-2.0
#include "commands/quota/quota_here.h"

#include "base/format.h"
#include "host/probe.h"
#include "host/quota/mps_server.h"

namespace cufit::commands {

facts::Facts quota_facts(const Context& context) {
  host::ProbeOptions options;
  options.driver_depth = host::DriverDepth::state;
  return host::collect(context.machine, options);
}

resolve::QuotaMachine quota_machine_here(const Context& context, const facts::Facts& facts) {
  const host::Host& machine = context.machine;
  resolve::QuotaMachine out = resolve::quota_machine(facts, context.knowledge);
  const Result<std::string> controllers =
      machine.read_file("/sys/fs/cgroup/cgroup.controllers", 64u << 10);
  out.accounting.clear();
  if (controllers)
    for (std::string_view name : split(trim(*controllers), ' '))
      if (name == "dmem" || (name == "misc" && out.accounting.empty())) out.accounting = name;
  const std::string pipes = machine.variable("CUDA_MPS_PIPE_DIRECTORY").value_or("");
  out.mps_running = !host::reachable_mps({"CUDA_MPS_PIPE_DIRECTORY=" + pipes}).empty();
  out.guard_off = machine.variable("CUFIT_GUARD").value_or("") == "0";
  return out;
}

}  // namespace cufit::commands
