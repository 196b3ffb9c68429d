// SPDX-License-Identifier: Apache-2.0
#include "commands/quota/quota_here.h"

#include "host/probe.h"
#include "host/process/start_program.h"
#include "host/quota/mps_server.h"

namespace cufit::commands {

facts::Facts quota_facts(const Context& context) {
  host::ProbeOptions options;
  options.driver_depth = host::DriverDepth::state;
  return host::collect(context.machine, options);
}

resolve::QuotaMachine quota_machine_here(const Context& context, const facts::Facts& facts) {
  const host::Host& machine = context.machine;
  const Result<std::string> controllers =
      machine.read_file("/sys/fs/cgroup/cgroup.controllers", 64u << 10);
  resolve::QuotaMachine out =
      resolve::quota_machine(facts, context.knowledge, controllers ? *controllers : std::string());
  const std::string pipes = machine.variable("CUDA_MPS_PIPE_DIRECTORY").value_or("");
  out.mps_running = !host::reachable_mps({"CUDA_MPS_PIPE_DIRECTORY=" + pipes}).empty();
  const std::string path = machine.variable("PATH").value_or("");
  out.mps_program = !host::find_program("nvidia-cuda-mps-control", {"PATH=" + path}).path.empty();
  out.guard_off = machine.variable("CUFIT_GUARD").value_or("") == "0";
  return out;
}

}  // namespace cufit::commands
