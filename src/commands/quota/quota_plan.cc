// SPDX-License-Identifier: Apache-2.0
#include "commands/quota/quota_plan.h"

#include "commands/quota/quota_here.h"
#include "host/files/recording.h"
#include "report/quota.h"

namespace cufit::commands {
namespace {

constexpr Option k_quota_plan_options[] = {
    option<&QuotaPlanRequest::from>("--from", "FILE"),
    option<&QuotaPlanRequest::json>("--json"),
};

Result<resolve::QuotaMachine> asked_machine(const Context& context,
                                            const QuotaPlanRequest& request) {
  if (request.from) {
    CUFIT_TRY(facts, host::load_facts(context.files, *request.from));
    resolve::QuotaMachine machine = resolve::quota_machine(facts, context.knowledge);
    if (machine.gpus.empty())
      return fail(Code::usage,
                  format("`--from {}`: no GPU in it, so there is nothing to limit", *request.from));
    return machine;
  }
  return quota_machine_here(context, quota_facts(context));
}

}  // namespace

std::span<const Option> quota_plan_options() { return k_quota_plan_options; }

int run_quota_plan(const Context& context, const QuotaPlanRequest& request) {
  const Output& output = context.output;
  const Result<resolve::QuotaMachine> machine = asked_machine(context, request);
  if (!machine) return output.exit_code_for(machine.error());
  const report::QuotaPlanView view{resolve::quota_backends(*machine, context.knowledge),
                                   !machine->gpus.empty(), request.from.has_value(),
                                   context.knowledge};
  const int code = resolve::chosen_backend(view.verdicts) ? k_ok : k_findings;
  return output.print(
      request.json ? report::quota_plan_json(view) : report::quota_plan_text(view, output.style()),
      code);
}

}  // namespace cufit::commands
