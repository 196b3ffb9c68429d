// SPDX-License-Identifier: Apache-2.0
#include "commands/quota/quota_verify.h"

#include "base/format.h"
#include "base/memory_size.h"
#include "host/probe.h"
#include "host/quota/quota_trial.h"
#include "report/quota.h"

namespace cufit::commands {
namespace {

constexpr Option k_quota_verify_options[] = {
    option<&QuotaVerifyRequest::vram>("--vram", "SIZE"),
    option<&QuotaVerifyRequest::json>("--json"),
    option<&QuotaVerifyRequest::command>("COMMAND"),
};

constexpr uint64_t k_usual_trial_limit = uint64_t{2} << 30;
// Where NVML does not say what a context takes (data/gpu_memory.toml has 150 to 770 MiB by GPU).
constexpr uint64_t k_trial_context = uint64_t{512} << 20;

struct TrialDomain {
  host::QuotaTrial trial;
  uint64_t limit = 0;
};

Result<uint64_t> limit_asked(const std::string& text) {
  const std::optional<uint64_t> bytes = parse_memory_size(text);
  if (!bytes)
    return fail(Code::usage,
                format("`{} {}`: a size in GiB such as 22.5, or 800MiB", "--vram", text));
  if (*bytes < resolve::k_least_trial_limit)
    return fail(Code::usage, format("`--vram {}`: a trial needs 1 GiB at least", text));
  return *bytes;
}

// The quota in which cufit itself was started (`cufit run --vram 10G -- cufit quota verify`), or one for the trial.
Result<TrialDomain> trial_domain(const Context& context, const QuotaVerifyRequest& request) {
  if (!request.vram && !context.machine.variable("CUFIT_DOMAIN").value_or("").empty()) {
    CUFIT_TRY(trial, host::QuotaTrial::here(context.machine));
    CUFIT_TRY(domain, trial.domain());
    uint64_t limit = domain.default_limit_bytes;
    if (!domain.devices.empty()) limit = domain.devices[0].limit_bytes;
    if (limit == formats::k_no_quota)
      return fail(Code::usage, "the quota domain of this process has no limit for its first GPU");
    return TrialDomain{std::move(trial), limit};
  }
  uint64_t limit = k_usual_trial_limit;
  if (request.vram) {
    CUFIT_TRY(asked, limit_asked(*request.vram));
    limit = asked;
  }
  CUFIT_TRY(trial, host::QuotaTrial::make(limit, k_trial_context));
  return TrialDomain{std::move(trial), limit};
}

// The Python of the environment that is in use, where it has torch; empty: none.
std::string torch_python(const Context& context) {
  facts::Facts facts;
  host::read_variables(context.machine, facts);
  host::read_python_envs(context.machine, {}, facts);
  for (const facts::PythonEnv& env : facts.envs)  // the active one first
    if (env.interpreter && env.torch.version) return *env.interpreter;
  return {};
}

std::vector<resolve::Trial> try_all(const Context& context, const TrialDomain& domain,
                                    host::Interrupts& interrupts) {
  const resolve::TrialSizes sizes = resolve::trial_sizes(domain.limit);
  std::vector<resolve::Trial> out;
  const auto keep = [&](const resolve::TrialWay& way, host::TrialAnswer answer) {
    resolve::Trial trial{
        way, {answer.phase, answer.below, answer.above, answer.refusals, std::move(answer.note)}};
    trial.proof = resolve::judge(trial.facts);
    out.push_back(std::move(trial));
  };
  for (const resolve::TrialWay& way : resolve::trial_ways()) {
    if (interrupts.caught() != 0) return out;
    keep(way, domain.trial.ask(way.way, way.route, sizes.below, sizes.above, interrupts));
    // Without a driver no other way comes further.
    if (out.size() == 1 && out[0].facts.phase == "library") return out;
  }
  const std::string python = torch_python(context);
  if (python.empty()) return out;
  for (const resolve::TrialWay& way : resolve::torch_ways()) {
    if (interrupts.caught() != 0) return out;
    keep(way, domain.trial.ask_torch(python, way.route, sizes.below, sizes.above, interrupts));
  }
  return out;
}

}  // namespace

std::span<const Option> quota_verify_options() { return k_quota_verify_options; }

int run_quota_verify(const Context& context, const QuotaVerifyRequest& request) {
  const Output& output = context.output;
  host::Interrupts interrupts;
  const Result<TrialDomain> domain = trial_domain(context, request);
  if (!domain) return output.exit_code_for(domain.error());
  report::QuotaVerifyView view{{}, domain->limit, {}, {}, context.knowledge};
  view.trials = try_all(context, *domain, interrupts);
  if (interrupts.caught() != 0)
    return output.exit_code_for(
        fail(Code::cancelled, format("interrupted by signal {}", interrupts.caught())));
  if (!request.command.empty()) {
    const Result<int> code = domain->trial.run(request.command, interrupts);
    if (!code) return output.exit_code_for(code.error());
    const Result<formats::QuotaDomain> after = domain->trial.domain();
    if (!after) return output.exit_code_for(after.error());
    view.command_code = *code;
    view.after = *after;
  }
  const int code = resolve::all_hold(view.trials) && !report::went_over(view) ? k_ok : k_findings;
  return output.print(request.json ? report::quota_verify_json(view)
                                   : report::quota_verify_text(view, output.style()),
                      code);
}

}  // namespace cufit::commands
