// SPDX-License-Identifier: Apache-2.0
#include "commands/pack/pack.h"

#include "commands/pack/pack_gpus.h"
#include "commands/pack/pack_inputs.h"
#include "report/pack.h"

namespace cufit::commands {
namespace {

constexpr Option k_pack_options[] = {
    option<&PackRequest::jobs>("JOB").needed(),
    option<&PackRequest::gpus>("--gpu", "NAME|SIZE|FILE|HERE"),
    option<&PackRequest::mig>("--mig"),
    option<&PackRequest::goal>("--goal", "WHAT", "fewest headroom"),
    option<&PackRequest::json>("--json"),
};

Result<pack::Question> pack_question(const Context& context, const PackRequest& request) {
  if (request.jobs.empty())
    return fail(Code::usage,
                "`cufit pack` needs jobs: a JOBS.toml, answers of `cufit fit --json`, snapshots or "
                "sizes");
  pack::Question out;
  CUFIT_TRY(gpus, pack_gpus(context, request.gpus));
  CUFIT_TRY(jobs, pack_jobs(context, request.jobs, gpus));
  out.gpus = std::move(gpus);
  out.jobs = std::move(jobs);
  out.goal = request.goal;
  out.divide = request.mig;
  return out;
}

}  // namespace

std::span<const Option> pack_options() { return k_pack_options; }

int run_pack(const Context& context, const PackRequest& request) {
  const Output& output = context.output;
  const Result<pack::Question> question = pack_question(context, request);
  if (!question && question.error().code == Code::cancelled) return k_interrupted;
  if (!question) return output.exit_code_for(question.error());
  const Result<pack::Plan> plan = pack::make_plan(*question, context.knowledge);
  if (!plan) return output.exit_code_for(plan.error());
  const report::PackView view{*question, *plan, context.knowledge};
  return output.print(
      request.json ? report::pack_json(view) : report::pack_text(view, output.style()),
      plan->unplaced.empty() ? k_ok : k_findings);
}

}  // namespace cufit::commands
