// SPDX-License-Identifier: Apache-2.0
#include "commands/fleet/fleet_check.h"

#include <algorithm>

#include "base/format.h"
#include "commands/fleet/fleet_jobs.h"
#include "commands/fleet/node_answer.h"
#include "host/files/atomic_write.h"
#include "host/files/paths.h"
#include "host/files/recording.h"
#include "report/fleet.h"

namespace cufit::commands {
namespace {

constexpr Option k_fleet_check_options[] = {
    inherited_option<FleetCheckRequest, &FleetCheckRequest::slurm>("--slurm"),
    inherited_option<FleetCheckRequest, &FleetCheckRequest::ssh>("--ssh", "HOSTS"),
    inherited_option<FleetCheckRequest, &FleetCheckRequest::kubernetes>("--kubernetes"),
    inherited_option<FleetCheckRequest, &FleetCheckRequest::from>("--from", "DIR"),
    inherited_option<FleetCheckRequest, &FleetCheckRequest::program>("--cufit", "PATH"),
    inherited_option<FleetCheckRequest, &FleetCheckRequest::kube_namespace>("--namespace", "NAME"),
    inherited_option<FleetCheckRequest, &FleetCheckRequest::seconds>("--timeout", "SECONDS"),
    option<&FleetCheckRequest::baseline>("--baseline", "FILE"),
    option<&FleetCheckRequest::policy>("--policy", "FILE"),
    option<&FleetCheckRequest::lock>("--lock", "DIR"),
    option<&FleetCheckRequest::jobs>("--job", "JOB"),
    option<&FleetCheckRequest::json>("--json"),
    option<&FleetCheckRequest::html>("--html", "FILE"),
    inherited_option<FleetCheckRequest, &FleetCheckRequest::srun_options>("SRUN_OPTION"),
};

constexpr size_t k_fleet_most_file = size_t{4} << 20;

Result<std::optional<checks::HealthRules>> fleet_rules(const Context& context,
                                                       const FleetCheckRequest& request) {
  std::optional<checks::HealthRules> out;
  if (!request.policy) return out;
  CUFIT_TRY(text, context.files.read_file(*request.policy, k_fleet_most_file));
  CUFIT_TRY(rules, checks::parse_health_rules(text, *request.policy, context.knowledge));
  if (rules.file.empty())
    return fail(
        Code::malformed,
        format("`{}` has no `[health]` table: nothing in it would be asked", *request.policy));
  out = std::move(rules);
  return out;
}

Result<std::optional<resolve::LockFile>> fleet_lock(const Context& context,
                                                    const FleetCheckRequest& request) {
  std::optional<resolve::LockFile> out;
  if (!request.lock) return out;
  const std::string path =
      host::is_folder(*request.lock) ? *request.lock + "/cufit.lock" : *request.lock;
  CUFIT_TRY(text, context.files.read_file(path, k_fleet_most_file));
  CUFIT_TRY(lock, resolve::parse_lock(text, path));
  out = std::move(lock);
  return out;
}

std::vector<report::FleetClass> classes_of(const NodeAnswers& nodes,
                                           const std::optional<resolve::LockFile>& lock) {
  std::vector<report::FleetClass> out;
  if (!lock) return out;
  for (const resolve::LockClass& one : lock->classes) out.push_back({one.name, {}});
  for (const NodeAnswer& answer : nodes.answers)
    if (answer.chosen < out.size()) out[answer.chosen].nodes.push_back(answer.node.name);
  return out;
}

std::vector<resolve::UnreachableNode> without_class(const NodeAnswers& nodes,
                                                    const std::optional<resolve::LockFile>& lock) {
  std::vector<resolve::UnreachableNode> out;
  if (!lock) return out;
  for (const NodeAnswer& answer : nodes.answers)
    if (answer.chosen == resolve::Routing::npos)
      out.push_back({answer.node.name, answer.why_no_class, false});
  return out;
}

bool all_well(const report::FleetView& view) {
  if (!view.without_class.empty()) return false;
  for (const resolve::UnreachableNode& node : view.unreachable)
    if (!node.busy) return false;
  for (const resolve::FleetNode& node : view.nodes)
    if (node.verdict != "works" && node.verdict != "limited") return false;
  // A cluster may have several kinds of GPUs.
  for (const resolve::NodeGroup& group : view.comparison.groups)
    for (const resolve::NodeDifference& one : group.differs)
      if (one.what != "gpus") return false;
  return true;
}

Result<int> check(const Context& context, const FleetCheckRequest& request) {
  CUFIT_TRY(rules, fleet_rules(context, request));
  CUFIT_TRY(lock, fleet_lock(context, request));
  std::optional<resolve::Fingerprint> baseline;
  if (request.baseline && *request.baseline != "majority") {
    CUFIT_TRY(facts, host::load_facts(context.files, *request.baseline));
    baseline = resolve::fingerprint_of(facts, "");
  }
  CUFIT_TRY(texts, ask_nodes(context, request));
  NodeAnswers nodes =
      read_nodes(std::move(texts), {context.knowledge, rules, lock, !request.jobs.empty()});
  std::vector<resolve::FleetNode> told;
  for (NodeAnswer& answer : nodes.answers) told.push_back(answer.node);
  const resolve::FleetComparison comparison = resolve::compare_nodes(told, baseline);
  CUFIT_TRY(jobs, nodes_for_jobs(context, request.jobs, nodes));
  const report::FleetView view{told,
                               nodes.unreachable,
                               comparison,
                               classes_of(nodes, lock),
                               without_class(nodes, lock),
                               baseline.has_value(),
                               context.knowledge,
                               std::move(jobs)};
  if (request.html) {
    const report::Style style = context.output.style();
    if (const Result<void> written =
            host::write_whole_file(*request.html, report::fleet_html(view, style));
        !written)
      return written.error();
  }
  return context.output.print(
      request.json ? report::fleet_json(view) : report::fleet_text(view, context.output.style()),
      all_well(view) ? k_ok : k_findings);
}

}  // namespace

std::span<const Option> fleet_check_options() { return k_fleet_check_options; }

int run_fleet_check(const Context& context, const FleetCheckRequest& request) {
  const Result<int> code = check(context, request);
  if (code) return *code;
  const int failed = context.output.exit_code_for(code.error());
  return code.error().code == Code::cancelled ? k_interrupted : failed;
}

}  // namespace cufit::commands
