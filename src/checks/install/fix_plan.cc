// SPDX-License-Identifier: Apache-2.0
#include "checks/install/fix_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "checks/doctor.h"
#include "checks/install/after_step.h"

namespace cufit::checks {
namespace {

constexpr size_t k_most_steps = 24;  // a machine with more faults than that is made anew

using Key = std::pair<std::string, std::string>;
Key key_of(const Finding& finding) { return {finding.id, finding.subject}; }

bool has(const Report& report, const Key& key) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const Finding& one) { return key_of(one) == key; });
}

const Finding* next_finding(const Report& report, const std::set<Key>& handled) {
  for (const Finding& one : report.findings) {
    const bool matters = one.severity == Severity::error || one.severity == Severity::warning;
    if (matters && handled.count(key_of(one)) == 0) return &one;
  }
  return nullptr;
}

}  // namespace

FixPlan plan_fix(facts::Facts facts, const knowledge::Knowledge& knowledge) {
  FixPlan plan;
  Report report = examine(facts, knowledge);
  plan.before = report.verdict;
  plan.certain = true;
  std::set<Key> handled;
  while (plan.steps.size() < k_most_steps) {
    const Finding* found = next_finding(report, handled);
    if (found == nullptr) break;
    FixStep step{*found, false};
    const Key key = key_of(*found);
    handled.insert(key);
    if (step.finding.change) {
      facts::Facts changed = after_step(facts, *step.finding.change, knowledge);
      Report after = examine(changed, knowledge);
      step.simulated = !has(after, key);
      if (step.simulated) {
        facts = std::move(changed);
        report = std::move(after);
      }
    }
    if (!step.simulated) plan.certain = false;
    plan.steps.push_back(std::move(step));
  }
  plan.after = report.verdict;
  return plan;
}

}  // namespace cufit::checks
