// SPDX-License-Identifier: Apache-2.0
#include "checks/doctor.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "checks/install/after_step.h"
#include "checks/install/driver_step.h"
#include "checks/report_sections.h"
#include "checks/torch_env.h"

namespace cufit::checks {

namespace {

// All GPUs of one environment together: fine if all are, broken if none works, limited in between.
LinkState together(const std::vector<LinkState>& states) {
  if (states.empty()) return LinkState::unknown;
  auto all = [&](LinkState wanted) {
    return std::all_of(states.begin(), states.end(),
                       [&](LinkState state) { return state == wanted; });
  };
  auto any = [&](LinkState wanted) {
    return std::find(states.begin(), states.end(), wanted) != states.end();
  };
  if (all(LinkState::ok)) return LinkState::ok;
  if (all(LinkState::broken)) return LinkState::broken;
  if (any(LinkState::unknown) && !any(LinkState::broken)) return LinkState::unknown;
  return LinkState::limited;
}

LinkState judge(const Input& input, const Report& report) {
  const facts::PythonEnv* main = main_env(input.facts);
  std::vector<LinkState> states;
  for (const Chain& chain : report.chains)
    if (main == nullptr || chain.env == main->path) states.push_back(judge_chain(chain));
  const LinkState each = together(states);
  // Each GPU computes, and all of them together do not.
  const bool apart = std::any_of(report.together.begin(), report.together.end(),
                                 [](const Link& row) { return row.state == LinkState::broken; });
  return each == LinkState::ok && apart ? LinkState::limited : each;
}

// Among findings of one severity the lower layer first: it has to be mended first.
void order_by_layer(std::vector<Finding>& findings, const knowledge::Knowledge& knowledge) {
  static constexpr std::string_view k_layers[] = {
      "hardware",    "wsl",       "kernel-driver", "container", "driver-runtime", "environment",
      "torch-build", "libraries", "extension",     "multi-gpu", "build",          "application"};
  auto layer = [&](const Finding& finding) {
    const knowledge::FindingTexts* texts = knowledge.find_texts(finding.id);
    return std::find(std::begin(k_layers), std::end(k_layers), texts ? texts->category : "") -
           std::begin(k_layers);
  };
  // keep_root_causes has put equal severities together; each run is ordered by itself.
  for (auto run = findings.begin(); run != findings.end();) {
    auto end = std::find_if(run, findings.end(), [&](const Finding& finding) {
      return finding.severity != run->severity;
    });
    std::stable_sort(run, end,
                     [&](const Finding& a, const Finding& b) { return layer(a) < layer(b); });
    run = end;
  }
}

std::vector<Finding> run_checks(const Input& input) {
  std::vector<Finding> all;
  for (const CheckRow& row : check_table()) {
    if (input.what_if && row.asks_machine) continue;
    for (Finding& finding : row.run(input)) all.push_back(std::move(finding));
  }
  return causes_first(std::move(all));
}

Report examine_once(const facts::Facts& facts, const knowledge::Knowledge& knowledge) {
  Input input = make_input(facts, knowledge);
  Report report;
  std::vector<Finding> all = run_checks(input);
  report.chains = build_chains(input, all);
  report.findings = keep_root_causes(std::move(all));
  order_by_layer(report.findings, knowledge);
  report.findings = merge_equal_gpus(std::move(report.findings), input);
  report.abilities = list_abilities(input);
  report.host_limits = list_host_limits(input);
  report.together = list_together(input);
  report.verdict = judge(input, report);
  return report;
}

bool finds(const Report& report, const Finding& wanted) {
  return std::any_of(report.findings.begin(), report.findings.end(), [&](const Finding& one) {
    return one.id == wanted.id && one.subject == wanted.subject && one.severity == wanted.severity;
  });
}

// --gpu without --driver: what the oldest maintained driver that serves all of it would make of it.
void ask_with_driver(const facts::Facts& facts, const knowledge::Knowledge& knowledge,
                     Report& report) {
  const Fact<std::string>& driver = facts.kernel.version;
  if (report.verdict != LinkState::unknown || driver || driver.source.kind != SourceKind::assumed)
    return;
  const DriverNeed need = driver_need(make_input(facts, knowledge));
  if (need.branch == 0) return;
  const Result<facts::Facts> driven = assume(facts, {{}, std::to_string(need.branch)}, knowledge);
  if (!driven) return;
  const LinkState verdict = examine_once(*driven, knowledge).verdict;
  if (verdict != LinkState::ok && verdict != LinkState::limited) return;
  report.driver_branch = need.branch;
  report.with_driver = verdict;
}

}  // namespace

std::vector<Finding> root_findings(const Input& input) {
  std::vector<Finding> roots = keep_root_causes(run_checks(input));
  order_by_layer(roots, input.knowledge);
  return roots;
}

Report examine(const facts::Facts& facts, const knowledge::Knowledge& knowledge) {
  Report report = examine_once(facts, knowledge);
  // A step after which the engine says the same is none.
  for (Finding& one : report.findings)
    if (one.change && one.severity == Severity::error)
      one.step_fails =
          finds(examine_once(after_step(facts, *one.change, knowledge), knowledge), one);
  ask_with_driver(facts, knowledge, report);
  return report;
}

}  // namespace cufit::checks
