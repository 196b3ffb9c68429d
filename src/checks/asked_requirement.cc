// SPDX-License-Identifier: Apache-2.0
#include "checks/asked_requirement.h"

#include <algorithm>

#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/torch_pins.h"

namespace cufit::checks {
namespace {

bool contradict(const formats::Requirement& a, const formats::Requirement& b) {
  const std::string of_a = exact_version(a), of_b = exact_version(b);
  return (!of_a.empty() && !formats::satisfies(b.clauses, of_a)) ||
         (!of_b.empty() && !formats::satisfies(a.clauses, of_b));
}

std::string named(const facts::Distribution& package) {
  return package.name + " " + package.version;
}

}  // namespace

std::string spec_of(const formats::Requirement& requirement) {
  std::vector<std::string> clauses;
  for (const formats::VersionClause& clause : requirement.clauses)
    clauses.push_back(clause.op + clause.version);
  const std::string extras =
      requirement.extras.empty() ? "" : "[" + join(requirement.extras, ",") + "]";
  return requirement.name + extras + join(clauses, ",");
}

const Asked* contradicted_by(const Asked& need, const std::vector<Asked>& needs) {
  const Asked* found = nullptr;
  for (const Asked& other : needs) {
    if (other.asker == need.asker || other.requirement.name != need.requirement.name) continue;
    if (!contradict(need.requirement, other.requirement)) continue;
    if (found == nullptr || other.asker->name == "torch") found = &other;
  }
  return found;
}

std::vector<Finding> contradictions(const facts::PythonEnv& env, const std::vector<Asked>& needs) {
  std::vector<Finding> out;
  std::vector<std::string> handled;
  for (const Asked& need : needs) {
    // Torch stays: the other one is the guest.
    const std::string asker = named(*need.asker);
    if (need.asker->name == "torch" ||
        std::find(handled.begin(), handled.end(), asker) != handled.end())
      continue;
    Finding made = finding("requirement_unmet", Severity::warning, subject_of(env));
    made.variant = "contradiction";
    std::vector<std::string> mine, theirs;
    for (const Asked& one : needs) {
      if (one.asker != need.asker || one.requirement.name == "torch") continue;
      const Asked* other = contradicted_by(one, needs);
      // Of two guests the one whose wish is not met is named; the other has what it asks for.
      if (other == nullptr || (one.installed != nullptr && other->asker->name != "torch" &&
                               formats::satisfies(one.requirement.clauses, one.installed->version)))
        continue;
      mine.push_back(spec_of(one.requirement));
      theirs.push_back(format("{} ({})", named(*other->asker), spec_of(other->requirement)));
      made.evidence.push_back({"file", one.asker->location + "/METADATA", mine.back()});
      made.evidence.push_back(
          {"file", other->asker->location + "/METADATA", spec_of(other->requirement)});
    }
    if (mine.empty()) continue;
    handled.push_back(asker);
    made.args = {{"asker", need.asker->name},
                 {"askers", asker + " (" + short_list(mine, 4) + ")"},
                 {"others", short_list(theirs, 4)},
                 {"env", env.path}};
    out.push_back(std::move(made));
  }
  return out;
}

}  // namespace cufit::checks
