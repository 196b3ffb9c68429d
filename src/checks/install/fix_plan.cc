// SPDX-License-Identifier: Apache-2.0
#include "checks/install/fix_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/format.h"
#include "checks/doctor.h"
#include "checks/evidence.h"
#include "checks/install/after_step.h"
#include "checks/torch_env.h"

namespace cufit::checks {
namespace {

constexpr size_t k_most_steps = 24;  // a machine with more faults than that is made anew

using Key = std::pair<std::string, std::string>;
Key key_of(const Finding& finding) { return {finding.id, finding.subject}; }

bool has(const Report& report, const Key& key) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const Finding& one) { return key_of(one) == key; });
}

// The environment whose program is to run: the activated one, or the one that has torch. null = any.
const facts::PythonEnv* env_in_use(const facts::Facts& facts) {
  for (const facts::PythonEnv& env : facts.envs)
    if (env.active && env.kind != "system") return &env;
  return main_env(facts);
}

// Other environments belong to other programs: nothing is installed into them unasked.
bool is_of_another(const Finding& finding, const facts::Facts& facts) {
  const facts::PythonEnv* used = env_in_use(facts);
  if (used == nullptr) return false;
  for (const facts::PythonEnv& env : facts.envs)
    if (&env != used && (finding.subject == subject_of(env) ||
                         starts_with(finding.subject, env.path + "/lib/python")))
      return true;
  return false;
}

const Finding* next_finding(const Report& report, const facts::Facts& facts,
                            const std::set<Key>& handled) {
  for (const Finding& one : report.findings) {
    if (is_of_another(one, facts)) continue;
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
  for (const Finding& one : report.findings)
    if (one.severity == Severity::note && !is_of_another(one, facts)) ++plan.notes;
  plan.certain = true;
  std::set<Key> handled;
  while (plan.steps.size() < k_most_steps) {
    const Finding* found = next_finding(report, facts, handled);
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
  for (const Finding& one : report.findings)
    if ((one.severity == Severity::error || one.severity == Severity::warning) &&
        is_of_another(one, facts))
      ++plan.left_alone;
  return plan;
}

}  // namespace cufit::checks
