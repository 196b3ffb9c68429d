// SPDX-License-Identifier: Apache-2.0
#include "commands/pack/mig_plan.h"

#include "base/format.h"
#include "commands/pack/pack_gpus.h"
#include "commands/pack/pack_inputs.h"
#include "report/pack.h"

namespace cufit::commands {
namespace {

constexpr Option k_mig_plan_options[] = {
    option<&MigPlanRequest::gpu>("--gpu", "NAME"),
    option<&MigPlanRequest::jobs>("--job", "SIZE"),
    option<&MigPlanRequest::json>("--json"),
    option<&MigPlanRequest::verbose>("-v,--verbose"),
};

// The GPUs that the table has profiles of.
std::string divisible(const knowledge::Knowledge& knowledge) {
  std::vector<std::string> names;
  for (const knowledge::MigCardRow& row : knowledge.mig_cards) names.emplace_back(row.gpu);
  return join(names, ", ");
}

// The name of the first that can be divided; empty: none.
std::string first_divisible(const std::vector<pack::Gpu>& gpus,
                            const knowledge::Knowledge& knowledge) {
  for (const pack::Gpu& gpu : gpus)
    if (knowledge.find_mig_card(gpu.table) != nullptr) return gpu.table;
  return {};
}

Error not_divisible(const std::string& asked, const knowledge::Knowledge& knowledge) {
  return fail(Code::usage,
              format("`--gpu {}`: cannot be divided as far as the table knows; it has {}", asked,
                     divisible(knowledge)));
}

Result<pack::Question> mig_question(const Context& context, const MigPlanRequest& request) {
  if (!request.gpu)
    return fail(Code::usage, format("`cufit mig plan` needs a GPU: --gpu NAME, one of {}",
                                    divisible(context.knowledge)));
  pack::Question out;
  CUFIT_TRY(gpus, pack_gpus(context, {*request.gpu}));
  if (gpus.size() > 1 && !gpus[0].is_instance) {
    const std::string name = first_divisible(gpus, context.knowledge);
    if (name.empty()) return not_divisible(*request.gpu, context.knowledge);
    return fail(
        Code::usage,
        format("`--gpu {}`: {} GPUs there, and `cufit mig plan` divides one: name it, as in "
               "--gpu \"{}\"; `cufit pack --mig` plans for several",
               *request.gpu, gpus.size(), name));
  }
  if (gpus.size() != 1 || gpus[0].is_instance)
    return fail(Code::usage, format("`--gpu {}`: mig plan takes one whole GPU, such as --gpu H100; "
                                    "`cufit pack --mig` plans for several",
                                    *request.gpu));
  out.gpus = std::move(gpus);
  out.divide = true;
  for (size_t i = 0; i < request.jobs.size(); ++i) {
    CUFIT_TRY(job,
              job_of_size("--job", request.jobs[i],
                          context.message("pack.input.job", {{"number", std::to_string(i + 1)}})));
    out.jobs.push_back(std::move(job));
  }
  return out;
}

}  // namespace

std::span<const Option> mig_plan_options() { return k_mig_plan_options; }

int run_mig_plan(const Context& context, const MigPlanRequest& request) {
  const Output& output = context.output;
  const Result<pack::Question> question = mig_question(context, request);
  if (!question) return output.exit_code_for(question.error());
  const std::optional<pack::MigCard> card =
      pack::mig_card(question->gpus[0].table, context.knowledge);
  if (!card) return output.exit_code_for(not_divisible(*request.gpu, context.knowledge));
  const Result<pack::Plan> plan = pack::make_plan(*question, context.knowledge);
  if (!plan) return output.exit_code_for(plan.error());
  const report::MigView view{*question, *plan, *card, context.knowledge};
  const int code = plan->unplaced.empty() ? k_ok : k_findings;
  if (request.json) return output.print(report::mig_plan_json(view), code);
  const report::Style style = output.style(request.verbose);
  return output.print(request.jobs.empty() ? report::mig_profiles_text(view, style)
                                           : report::mig_plan_text(view, style),
                      code);
}

}  // namespace cufit::commands
