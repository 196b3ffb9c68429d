// SPDX-License-Identifier: Apache-2.0
#include "resolve/wheel/python_choice.h"

#include <algorithm>
#include <functional>

#include "base/format.h"

namespace cufit::resolve {
namespace {

bool has(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool meets_all(const Request& request, const std::string& python) {
  return std::all_of(request.pythons.begin(), request.pythons.end(),
                     [&](const PythonDemand& demand) { return meets(demand, python); });
}

Reason unmet(const PythonDemand& demand, std::string have) {
  return {"requires_python",
          {{"requirement", "requires-python " + demand.text},
           {"file", demand.file},
           {"have", std::move(have)}}};
}

using Test = std::function<bool(const std::string&)>;

bool any_of(const Wheel& wheel, const Test& test) {
  return std::any_of(wheel.pythons.begin(), wheel.pythons.end(), [&](const std::string& python) {
    return !free_threaded(python) && test(python);
  });
}

// No Python of the wheel's is left, and nothing named one: the projects leave none, or the policy,
// or only both together.
std::vector<Reason> none_left(const Wheel& wheel, const Request& request) {
  const Test permitted = [&](const std::string& python) {
    return forbids_python(request.policy, python).empty();
  };
  const Test wanted = [&](const std::string& python) { return meets_all(request, python); };
  std::vector<Reason> out;
  if (!any_of(wheel, wanted)) {
    std::vector<Reason> all;
    for (const PythonDemand& demand : request.pythons) {
      all.push_back(unmet(demand, join(wheel.pythons, ", ")));
      if (!any_of(wheel, [&](const std::string& python) { return meets(demand, python); }))
        out.push_back(all.back());
    }
    if (out.empty()) out = std::move(all);  // several projects, which leave none only together
  }
  // The newest that the projects take stands for all; each of the two may rule out all alone.
  const bool only_together = out.empty() && any_of(wheel, permitted);
  std::string newest = wheel.pythons.back();
  for (const std::string& python : wheel.pythons)
    if (!free_threaded(python) && wanted(python)) newest = python;
  if (!out.empty() && any_of(wheel, permitted)) return out;
  for (Reason& reason : forbids_python(request.policy, newest)) {
    if (only_together && !request.pythons.empty())
      reason.args["requirement"] = "requires-python " + request.pythons.front().text;
    out.push_back(std::move(reason));
  }
  return out;
}

// As doctor takes it: the newest minors are those that most other packages lack wheels for, and 3.12
// is served by all. Nearest to it from below, then from above.
bool goes_before(const std::string& python, const std::string& other) {
  const Version settled{{3, 12}};
  const auto mine = parse_version(python), theirs = parse_version(other);
  if (!mine || !theirs) return theirs == std::nullopt;
  if ((*mine <= settled) != (*theirs <= settled)) return *mine <= settled;
  return *mine <= settled ? *mine > *theirs : *mine < *theirs;
}

}  // namespace

bool meets(const PythonDemand& demand, const std::string& python) {
  return formats::some_patch_satisfies(
      demand.clauses, free_threaded(python) ? python.substr(0, python.size() - 1) : python);
}

std::string pick_python(const Wheel& wheel, const Target& target, const Request& request) {
  const std::string& wanted = request.python.empty() ? target.python : request.python;
  if (!wanted.empty()) return has(wheel.pythons, wanted) ? wanted : "";
  const auto allowed = [&](const std::string& python) {
    return forbids_python(request.policy, python).empty() && meets_all(request, python);
  };
  if (has(wheel.pythons, target.preferred_python) && allowed(target.preferred_python))
    return target.preferred_python;
  std::string best;
  for (const std::string& python : wheel.pythons)
    if (!free_threaded(python) && allowed(python) && (best.empty() || goes_before(python, best)))
      best = python;
  return best;
}

std::vector<Reason> python_reasons(const Wheel& wheel, const std::string& picked,
                                   const std::string& named, const Request& request) {
  if (named.empty())
    return picked.empty() && !wheel.pythons.empty() ? none_left(wheel, request)
                                                    : std::vector<Reason>();
  std::vector<Reason> out = forbids_python(request.policy, named);
  for (const PythonDemand& demand : request.pythons)
    if (!meets(demand, named)) {
      out.push_back(unmet(demand, named));
      out.back().args["python"] = named;
    }
  return out;
}

}  // namespace cufit::resolve
