// SPDX-License-Identifier: Apache-2.0
#include "commands/fleet/fleet_plan.h"

#include "base/format.h"
#include "commands/fleet/fleet_jobs.h"
#include "fit/pack/fleet_engine.h"
#include "report/fleet_plan.h"

namespace cufit::commands {
namespace {

constexpr Option k_fleet_plan_options[] = {
    option<&FleetPlanRequest::jobs>("JOB").needed(),
    inherited_option<FleetPlanRequest, &FleetPlanRequest::slurm>("--slurm"),
    inherited_option<FleetPlanRequest, &FleetPlanRequest::ssh>("--ssh", "HOSTS"),
    inherited_option<FleetPlanRequest, &FleetPlanRequest::kubernetes>("--kubernetes"),
    inherited_option<FleetPlanRequest, &FleetPlanRequest::from>("--from", "DIR"),
    option<&FleetPlanRequest::engine>("--engine", "NAME", "slurm kubernetes ssh"),
    option<&FleetPlanRequest::goal>("--goal", "WHAT", "fewest headroom"),
    option<&FleetPlanRequest::mig>("--mig"),
    inherited_option<FleetPlanRequest, &FleetPlanRequest::program>("--cufit", "PATH"),
    inherited_option<FleetPlanRequest, &FleetPlanRequest::kube_namespace>("--namespace", "NAME"),
    inherited_option<FleetPlanRequest, &FleetPlanRequest::seconds>("--timeout", "SECONDS"),
    option<&FleetPlanRequest::json>("--json"),
};

pack::Engine engine_of(const FleetPlanRequest& request) {
  const std::string named = request.engine.value_or(request.slurm        ? "slurm"
                                                    : request.kubernetes ? "kubernetes"
                                                                         : "ssh");
  return named == "slurm"        ? pack::Engine::slurm
         : named == "kubernetes" ? pack::Engine::kubernetes
                                 : pack::Engine::ssh;
}

Result<int> plan(const Context& context, const FleetPlanRequest& request) {
  if (request.jobs.empty())
    return fail(Code::usage,
                "`cufit fleet plan` needs jobs: a JOBS.toml, answers of `cufit fit --json`, "
                "snapshots or sizes");
  const pack::Engine engine = engine_of(request);
  CUFIT_TRY(texts, ask_nodes(context, request));
  pack::SlurmCluster slurm;
  if (engine == pack::Engine::slurm && (request.slurm || request.from)) {
    CUFIT_TRY(lines, slurm_node_lines(context, request));
    slurm = {formats::parse_slurm_nodes(lines), formats::parse_slurm_partitions(lines)};
  }
  const std::optional<checks::HealthRules> no_rules;
  const std::optional<resolve::LockFile> no_lock;
  JobMachines machines =
      job_machines(read_nodes(std::move(texts), {context.knowledge, no_rules, no_lock, true}));
  for (pack::MachineOut& one : pack::take_out_by_slurm(slurm, machines.machines))
    machines.out.push_back(std::move(one));
  CUFIT_TRY(jobs, fleet_jobs(context, request.jobs, machines.machines));
  pack::FleetQuestion question;
  question.jobs = std::move(jobs);
  question.machines = std::move(machines.machines);
  question.goal = request.goal;
  question.divide = request.mig;
  pack::offer_by(engine, slurm, question);
  CUFIT_TRY(made, pack::make_fleet_plan(question, context.knowledge));
  report::FleetPlanView view{question, made, engine, machines.out, {}, context.knowledge};
  for (const size_t job : made.unplaced)
    view.unplaced.push_back(
        pack::nodes_for_job(question.jobs[job], question.machines, machines.out));
  return context.output.print(request.json ? report::fleet_plan_json(view)
                                           : report::fleet_plan_text(view, context.output.style()),
                              made.unplaced.empty() ? k_ok : k_findings);
}

}  // namespace

std::span<const Option> fleet_plan_options() { return k_fleet_plan_options; }

int run_fleet_plan(const Context& context, const FleetPlanRequest& request) {
  const Result<int> code = plan(context, request);
  if (code) return *code;
  if (code.error().code == Code::cancelled) return k_interrupted;
  return context.output.exit_code_for(code.error());
}

}  // namespace cufit::commands
