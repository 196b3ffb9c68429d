// SPDX-License-Identifier: Apache-2.0
#include "resolve/wheel/resolve.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "formats/python/marker.h"
#include "resolve/wheel/conflict.h"
#include "resolve/wheel/python_choice.h"

namespace cufit::resolve {
namespace {

using knowledge::Knowledge;

// What every wheel of one question is judged with.
struct World {
  const Knowledge& knowledge;
  std::set<size_t> absent;  // places of the wheels that the index does not have
};

bool has_word_of(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void reject(Choice& choice, Reason reason) {
  if (choice.verdict.fit != Fit::no) choice.verdict.reasons.clear();
  choice.verdict.fit = Fit::no;
  choice.verdict.reasons.push_back(std::move(reason));
}

Companion* find_companion(Choice& choice, const std::string& package) {
  for (Companion& companion : choice.companions)
    if (companion.package == package) return &companion;
  return nullptr;
}

// A marker is asked of the Python and the machine that this choice would have: "torch==2.4.0;
// python_version < '3.12'" says nothing about a wheel that is taken for 3.13.
bool applies(const formats::Requirement& requirement, const Wheel& wheel,
             const std::string& python) {
  if (requirement.marker.empty()) return true;
  const std::string machine = wheel.platform.substr(wheel.platform.find('_') + 1);
  const std::string minor = free_threaded(python) ? python.substr(0, python.size() - 1) : python;
  return formats::requirement_that_applies(requirement.name + "; " + requirement.marker,
                                           {minor, machine})
      .has_value();
}

// Only something newer than `newest`, the last that the table has, can meet this.
bool asks_beyond(const formats::Requirement& requirement, const std::string& newest) {
  const auto known = formats::parse_python_version(newest);
  return known && std::any_of(requirement.clauses.begin(), requirement.clauses.end(),
                              [&](const formats::VersionClause& clause) {
                                const auto asked = formats::parse_python_version(clause.version);
                                if (!asked) return false;
                                const auto order = formats::compare(*asked, *known);
                                if (clause.op == ">") return order >= 0;
                                return order > 0 && clause.op != "!=" && clause.op[0] != '<';
                              });
}

// A release that is no row of the table: unknown, which is no reason against it.
void leave_to_installer(const formats::Requirement& requirement, Companion& companion,
                        Choice& choice) {
  companion.beyond = requirement.text;
  choice.verdict.reasons.push_back({"not_in_tables",
                                    {{"requirement", requirement.text},
                                     {"package", companion.package},
                                     {"have", companion.judged_by}}});
}

void apply_requirement(const formats::Requirement& requirement, Choice& choice) {
  if (!applies(requirement, choice.wheel, choice.python)) return;
  if (requirement.name == "torch") {
    const std::string version = choice.wheel.torch + "+" + choice.wheel.tag;
    if (!formats::satisfies(requirement.clauses, version))
      reject(choice, {"requirement", {{"requirement", requirement.text}}});
    return;
  }
  Companion* companion = find_companion(choice, requirement.name);
  if (companion == nullptr) return;  // not bound to torch's release: the installer's business
  if (companion->version.empty())
    return reject(choice, {"extension",
                           {{"requirement", requirement.text},
                            {"package", companion->package},
                            {"why", companion->why_not}}});
  if (!companion->judged_by.empty()) return leave_to_installer(requirement, *companion, choice);
  if (formats::satisfies(requirement.clauses, companion->version)) return;
  if (companion->newest && asks_beyond(requirement, companion->version)) {
    companion->beyond = requirement.text;
    choice.verdict.reasons.push_back({"newer_than_tables",
                                      {{"requirement", requirement.text},
                                       {"have", companion->package + " " + companion->version}}});
  } else {
    reject(choice, {"requirement_companion",
                    {{"requirement", requirement.text},
                     {"have", companion->package + " " + companion->version}}});
  }
}

CompanionPlace companion_place_of(const Choice& choice, const Target& target,
                                  const Request& request) {
  CompanionPlace place{choice.python,
                       {},
                       target.glibc,
                       requirements_for(request.requirements, choice.wheel, choice.python)};
  for (const TargetGpu& gpu : target.gpus) place.ccs.push_back(gpu.cc);
  return place;
}

bool lacks_asked(const std::vector<Companion>& companions, const Request& request) {
  return std::any_of(companions.begin(), companions.end(), [&](const Companion& one) {
    return one.version.empty() &&
           std::any_of(
               request.requirements.begin(), request.requirements.end(),
               [&](const formats::Requirement& asked) { return asked.name == one.package; });
  });
}

// What is asked for may have a file for this CUDA on PyTorch's own index alone: then both come from
// there.
void add_companions(Choice& choice, const Target& target, const Request& request,
                    const Knowledge& knowledge) {
  const CompanionPlace place = companion_place_of(choice, target, request);
  choice.companions = companions_of(choice.wheel, place, knowledge);
  if (!choice.wheel.on_default_index || request.default_index_only || request.index ||
      !lacks_asked(choice.companions, request))
    return;
  Wheel own = choice.wheel;
  own.on_default_index = false;
  std::vector<Companion> there = companions_of(own, place, knowledge);
  if (lacks_asked(there, request)) return;
  choice.wheel = std::move(own);
  choice.companions = std::move(there);
}

// Usable as far as anything tells: what is not told about the driver is a condition, not a no.
bool offered(const Choice& choice) {
  if (usable(choice.verdict.fit) || choice.verdict.fit == Fit::needs_compat) return true;
  if (choice.verdict.fit != Fit::unknown) return false;
  return std::all_of(choice.verdict.reasons.begin(), choice.verdict.reasons.end(),
                     [](const Reason& reason) {
                       return reason.id.rfind("driver_not_told", 0) == 0 ||
                              reason.id.rfind("driver_absent", 0) == 0 || reason.id == "gpu_ptx";
                     });
}

// "torch==2.8.0+cpu" asks for the processor where a GPU is.
bool asks_for_cpu(const Request& request, const Wheel& wheel, const std::string& python) {
  for (const formats::Requirement& requirement : request.requirements)
    for (const formats::VersionClause& clause : requirement.clauses)
      if (requirement.name == "torch" && contains(clause.version, "+cpu") &&
          applies(requirement, wheel, python))
        return true;
  return false;
}

Choice choose(const Wheel& wheel, const Target& target, const Request& request,
              const World& world) {
  const Knowledge& knowledge = world.knowledge;
  Choice choice;
  choice.wheel = wheel;
  Target machine = target;
  if (!request.python.empty()) machine.python = request.python;
  choice.python = pick_python(wheel, machine, request);
  if (wheel.is_cpu() && asks_for_cpu(request, wheel, choice.python)) {
    machine.gpus.clear();
    machine.unknown_gpus.clear();
  }
  // PyTorch's own index has files for more Pythons of some releases.
  if (wheel.on_default_index && !wheel.default_pythons.empty() && !choice.python.empty())
    choice.wheel.on_default_index = has_word_of(wheel.default_pythons, choice.python);
  choice.verdict = judge(wheel, machine, knowledge);
  // Of a wheel that falls anyway nobody asks what goes with it.
  if (offered(choice)) add_companions(choice, target, request, knowledge);
  for (const formats::Requirement& requirement : request.requirements)
    apply_requirement(requirement, choice);
  for (Reason& reason : forbids(request.policy, wheel)) reject(choice, std::move(reason));
  for (Reason& reason : python_reasons(wheel, choice.python, machine.python, request))
    reject(choice, std::move(reason));
  if (request.default_index_only && !choice.wheel.on_default_index)
    reject(choice, {"default_index", {{"tag", wheel.tag}}});
  return choice;
}

bool better(const Choice& a, const Choice& b) {
  // A package to install beneath the driver comes after everything that runs as it is.
  const bool a_compat = a.verdict.fit == Fit::needs_compat;
  const bool b_compat = b.verdict.fit == Fit::needs_compat;
  if (a_compat != b_compat) return b_compat;
  if (a.age != b.age) return a.age < b.age;
  if (a.verdict.fit != b.verdict.fit) return a.verdict.fit < b.verdict.fit;
  if (a.wheel.on_default_index != b.wheel.on_default_index) return a.wheel.on_default_index;
  return a.wheel.cuda && b.wheel.cuda && *a.wheel.cuda > *b.wheel.cuda;
}

// Of a wheel that falls anyway nobody asked what goes with it; a conflict counts that in, or it
// would call what no wheel has satisfiable.
void judge_companions(Answer& answer, const Request& request, const Knowledge& knowledge) {
  for (Choice& choice : answer.rejected) {
    if (!choice.companions.empty()) continue;
    choice.companions =
        companions_of(choice.wheel, companion_place_of(choice, answer.target, request), knowledge);
    for (const formats::Requirement& requirement : request.requirements)
      if (requirement.name != "torch") apply_requirement(requirement, choice);
    choice.companions.clear();
  }
}

std::vector<std::string> conflict_of(Answer answer, const Request& request,
                                     const Knowledge& knowledge) {
  const auto companion = [](const formats::Requirement& one) { return one.name != "torch"; };
  if (std::any_of(request.requirements.begin(), request.requirements.end(), companion))
    judge_companions(answer, request, knowledge);
  return smallest_conflict(answer);
}

Answer resolve_together(const Target& target, const Request& request,
                        const std::vector<Wheel>& wheels, const World& world) {
  Answer answer;
  answer.target = target;
  const std::vector<Reason> machine_forbidden = forbids(request.policy, target, world.knowledge);
  size_t age = 0;
  for (size_t place = 0; place < wheels.size(); ++place) {
    if (place > 0 && wheels[place].torch != wheels[place - 1].torch) ++age;
    Choice choice = choose(wheels[place], target, request, world);
    choice.age = age;
    if (world.absent.count(place) > 0) reject(choice, {"not_on_index", {}});
    for (const Reason& reason : machine_forbidden) reject(choice, reason);
    const bool fits = offered(choice);
    // A rule that nothing can be held against yet is a condition.
    if (fits && !request.policy.driver_min.empty() && !target.driver && !target.gpus.empty())
      choice.verdict.reasons.push_back(
          {"driver_policy", {{"need", request.policy.driver_min}, {"file", request.policy.file}}});
    (fits ? answer.usable : answer.rejected).push_back(std::move(choice));
  }
  std::stable_sort(answer.usable.begin(), answer.usable.end(), better);
  return answer;
}

// Which wheels serve this part of the machine, a flag a wheel.
std::vector<bool> served_by(const Target& target, const Request& request,
                            const std::vector<Wheel>& wheels, const World& world) {
  std::vector<bool> out;
  if (!forbids(request.policy, target, world.knowledge).empty())
    return std::vector<bool>(wheels.size());
  for (size_t place = 0; place < wheels.size(); ++place)
    out.push_back(world.absent.count(place) == 0 &&
                  offered(choose(wheels[place], target, request, world)));
  return out;
}

// The parts of `left` that some wheel serves, GPU by GPU; the largest first. A part is one flag a
// GPU, the last GPU first, so that of equal ones that with the older GPUs comes first.
std::vector<std::vector<bool>> parts_of(const std::vector<std::vector<bool>>& alone) {
  std::set<std::vector<bool>> parts;
  for (size_t place = 0; place < alone.front().size(); ++place) {
    std::vector<bool> part;
    for (size_t i = alone.size(); i-- > 0;) part.push_back(alone[i][place]);
    parts.insert(std::move(part));
  }
  std::vector<std::vector<bool>> out(parts.begin(), parts.end());
  const auto size = [](const std::vector<bool>& part) {
    return std::count(part.begin(), part.end(), true);
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](const auto& a, const auto& b) { return size(a) > size(b); });
  return out;
}

// Distinct GPUs, none of whose wheels serves them all, into few groups, each of which some wheel
// serves: the largest part of what is left, again and again.
std::vector<Answer> resolve_groups(const Target& target, const Request& request,
                                   const std::vector<Wheel>& wheels, const World& world) {
  std::vector<Answer> groups;
  std::vector<TargetGpu> left = target.gpus;
  // A wheel that serves several GPUs serves each of them alone, so no larger part is missed.
  std::vector<std::vector<bool>> alone;
  for (const TargetGpu& gpu : left)
    alone.push_back(served_by(with_gpus(target, {gpu}), request, wheels, world));
  while (!left.empty()) {
    std::optional<Answer> found;
    std::vector<bool> taken(left.size());
    for (std::vector<bool>& part : parts_of(alone)) {
      std::reverse(part.begin(), part.end());
      std::vector<TargetGpu> gpus;
      for (size_t i = 0; i < left.size(); ++i)
        if (part[i]) gpus.push_back(left[i]);
      if (gpus.empty() || gpus.size() == target.gpus.size()) continue;  // together: asked already
      Answer answer = resolve_together(with_gpus(target, gpus), request, wheels, world);
      if (answer.usable.empty()) continue;
      found = std::move(answer);
      taken = std::move(part);
      break;
    }
    if (!found) {  // a GPU that nothing serves, alone
      found = resolve_together(with_gpus(target, {left.front()}), request, wheels, world);
      found->conflict = conflict_of(*found, request, world.knowledge);
      taken[0] = true;
    }
    groups.push_back(std::move(*found));
    for (size_t i = left.size(); i-- > 0;) {
      if (!taken[i]) continue;
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
      alone.erase(alone.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  const bool any = std::any_of(groups.begin(), groups.end(),
                               [](const Answer& group) { return !group.usable.empty(); });
  return any ? groups : std::vector<Answer>();
}

// The newest torch for these GPUs under their newest driver, where every wheel of a newer one lacks
// code for them.
Wheel last_for(const Target& target, const std::vector<Wheel>& wheels, const Knowledge& knowledge) {
  if (target.gpus.empty()) return {};
  Target any_driver = target;
  any_driver.driver.reset();
  any_driver.driver_cuda.reset();
  any_driver.driver_state = Target::Driver::not_told;
  any_driver.unknown_gpus.clear();
  any_driver.glibc.reset();
  any_driver.python.clear();
  std::string left_behind;  // a newer release that does not serve them
  for (const Wheel& wheel : wheels) {
    if (wheel.is_cpu()) continue;
    Choice choice;
    choice.verdict = judge(wheel, any_driver, knowledge);
    const bool serves = offered(choice);
    if (!serves && left_behind.empty()) left_behind = wheel.torch;
    if (serves) return left_behind.empty() || left_behind == wheel.torch ? Wheel() : wheel;
  }
  return {};
}

}  // namespace

std::vector<formats::Requirement> requirements_for(
    const std::vector<formats::Requirement>& requirements, const Wheel& wheel,
    const std::string& python) {
  std::vector<formats::Requirement> out;
  for (const formats::Requirement& one : requirements)
    if (applies(one, wheel, python)) out.push_back(one);
  return out;
}

bool served(const Answer& answer) {
  if (!answer.usable.empty()) return true;
  return !answer.groups.empty() && std::all_of(answer.groups.begin(), answer.groups.end(), served);
}

Answer resolve(const Target& target, const Request& request, const Knowledge& knowledge) {
  std::vector<Wheel> wheels = known_wheels(knowledge, target.platform);
  std::vector<size_t> absent;
  if (request.index) {
    absent = match_available(available_of(*request.index, target.platform, target.glibc),
                             target.platform, wheels);
    const auto beside = [&](size_t place) {
      return std::any_of(request.beside_index.begin(), request.beside_index.end(),
                         [&](const Wheel& one) {
                           return one.torch == wheels[place].torch && one.tag == wheels[place].tag;
                         });
    };
    absent.erase(std::remove_if(absent.begin(), absent.end(), beside), absent.end());
  }
  std::vector<Disagreement> disagreements = believe_files(request.installed, knowledge, wheels);
  const World world{knowledge, std::set<size_t>(absent.begin(), absent.end())};
  Answer answer = resolve_together(target, request, wheels, world);
  answer.disagreements = std::move(disagreements);
  answer.last_for_gpus = last_for(target, wheels, knowledge);
  if (!answer.usable.empty()) return answer;
  if (target.gpus.size() > 1) answer.groups = resolve_groups(target, request, wheels, world);
  // What ends for an old card ends for its group, not for the machine.
  for (Answer& group : answer.groups)
    group.last_for_gpus = last_for(group.target, wheels, knowledge);
  answer.conflict = conflict_of(answer, request, knowledge);
  for (const formats::Requirement& one : request.requirements)
    if (answer.conflict.size() == 1 && answer.conflict[0] == one.text && one.name == "torch" &&
        asks_beyond(one, knowledge.newest_torch().text()))
      answer.beyond_tables = one.text;
  return answer;
}

}  // namespace cufit::resolve
