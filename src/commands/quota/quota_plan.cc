// SPDX-License-Identifier: Apache-2.0
#include "commands/quota/quota_plan.h"

#include "base/format.h"
#include "host/files/recording.h"
#include "host/probe.h"
#include "host/quota/mps_server.h"
#include "report/quota.h"
#include "resolve/quota/quota_machine.h"

namespace cufit::commands {
namespace {

constexpr Option k_quota_plan_options[] = {
    option<&QuotaPlanRequest::from>("--from", "FILE"),
    option<&QuotaPlanRequest::json>("--json"),
};

// What facts do not hold: the controllers that are there, a server of MPS, and the guard's switch.
void ask_here(const host::Host& machine, resolve::QuotaMachine& out) {
  const Result<std::string> controllers =
      machine.read_file("/sys/fs/cgroup/cgroup.controllers", 64u << 10);
  out.accounting.clear();
  if (controllers)
    for (std::string_view name : split(trim(*controllers), ' '))
      if (name == "dmem" || (name == "misc" && out.accounting.empty())) out.accounting = name;
  const std::string pipes = machine.variable("CUDA_MPS_PIPE_DIRECTORY").value_or("");
  out.mps_running = !host::reachable_mps({"CUDA_MPS_PIPE_DIRECTORY=" + pipes}).empty();
  out.guard_off = machine.variable("CUFIT_GUARD").value_or("") == "0";
}

Result<resolve::QuotaMachine> asked_machine(const Context& context,
                                            const QuotaPlanRequest& request) {
  if (request.from) {
    CUFIT_TRY(facts, host::load_facts(context.files, *request.from));
    return resolve::quota_machine(facts, context.knowledge);
  }
  host::ProbeOptions options;
  options.driver_depth = host::DriverDepth::state;
  resolve::QuotaMachine out =
      resolve::quota_machine(host::collect(context.machine, options), context.knowledge);
  ask_here(context.machine, out);
  return out;
}

}  // namespace

std::span<const Option> quota_plan_options() { return k_quota_plan_options; }

int run_quota_plan(const Context& context, const QuotaPlanRequest& request) {
  const Output& output = context.output;
  const Result<resolve::QuotaMachine> machine = asked_machine(context, request);
  if (!machine) return output.exit_code_for(machine.error());
  const report::QuotaPlanView view{resolve::quota_backends(*machine, context.knowledge),
                                   request.from.has_value(), context.knowledge};
  const int code = resolve::chosen_backend(view.verdicts) ? k_ok : k_findings;
  return output.print(
      request.json ? report::quota_plan_json(view) : report::quota_plan_text(view, output.style()),
      code);
}

}  // namespace cufit::commands
