// SPDX-License-Identifier: Apache-2.0
#include "resolve/wheel/python_choice.h"

#include <algorithm>
#include <functional>

#include "base/format.h"

namespace cufit::resolve {
namespace {

using knowledge::Knowledge;

bool has(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Days since an arbitrary day, good enough for "about a year before".
std::optional<int> day_number(const std::string& date) {
  const auto parsed = parse_version(date.size() == 10 ? date.substr(0, 4) : "");
  if (!parsed) return std::nullopt;
  const auto two = [&](size_t at) { return (date[at] - '0') * 10 + (date[at + 1] - '0'); };
  return static_cast<int>(parsed->part(0)) * 365 + two(5) * 30 + two(8);
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

}  // namespace

bool meets(const PythonDemand& demand, const std::string& python) {
  return formats::some_patch_satisfies(
      demand.clauses, free_threaded(python) ? python.substr(0, python.size() - 1) : python);
}

Pythons::Pythons(const Knowledge& knowledge) {
  for (const knowledge::TorchRelease& release : knowledge.torch_releases) {
    const std::optional<int> day = day_number(std::string(release.date));
    if (!day) continue;
    newest_ = std::max(newest_, *day);
    for (std::string_view python : split(release.python, ' ')) {
      const auto known = first_.find(python);
      if (known == first_.end())
        first_.emplace(std::string(python), *day);
      else
        known->second = std::min(known->second, *day);
    }
  }
}

bool Pythons::settled(const std::string& python, const Wheel& wheel) const {
  constexpr int k_new_days = 300;
  const auto first = first_.find(python);
  return first != first_.end() &&
         day_number(wheel.released).value_or(newest_) - first->second >= k_new_days;
}

std::string pick_python(const Wheel& wheel, const Target& target, const Request& request,
                        const Pythons& pythons) {
  const std::string& wanted = request.python.empty() ? target.python : request.python;
  if (!wanted.empty()) return has(wheel.pythons, wanted) ? wanted : "";
  const auto allowed = [&](const std::string& python) {
    return forbids_python(request.policy, python).empty() && meets_all(request, python);
  };
  if (has(wheel.pythons, target.preferred_python) && allowed(target.preferred_python))
    return target.preferred_python;
  std::string best;
  bool best_settled = false;
  for (const std::string& python : wheel.pythons) {
    if (free_threaded(python) || !allowed(python)) continue;
    const bool settled = pythons.settled(python, wheel);
    const auto mine = parse_version(python), theirs = parse_version(best);
    if (best.empty() || (settled && !best_settled) ||
        (settled == best_settled && mine && theirs && *mine > *theirs)) {
      best = python;
      best_settled = settled;
    }
  }
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
