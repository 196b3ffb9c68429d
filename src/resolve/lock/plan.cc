// SPDX-License-Identifier: Apache-2.0
// The fewest classes that serve all targets: a smallest set cover. Wheels that serve the same
// targets are rivals, and only the best of them is kept, so that few sets are left to combine.
#include <algorithm>
#include <map>

#include "base/format.h"
#include "resolve/wheel/resolve.h"

namespace cufit::resolve {
namespace {

using knowledge::Knowledge;

// A wheel, the targets that it serves, and how far it is from the best for each of them.
struct Candidate {
  const Choice* choice = nullptr;
  uint64_t serves = 0;
  std::map<size_t, size_t> rank;  // target -> place among the target's usable choices
};

using Key = std::pair<std::string, std::string>;  // torch and platform + tag
Key key_of(const Wheel& wheel) { return {wheel.torch, wheel.platform + " " + wheel.tag}; }

// A class that needs cuda-compat beneath is taken only where nothing else is left.
bool counts(const Choice& choice, const Answer& answer) {
  return choice.verdict.fit != Fit::needs_compat ||
         answer.usable.front().verdict.fit == Fit::needs_compat;
}

std::vector<Candidate> candidates_of(const std::vector<Answer>& answers) {
  std::map<Key, Candidate> all;
  for (size_t target = 0; target < answers.size(); ++target) {
    const std::vector<Choice>& usable_here = answers[target].usable;
    for (size_t place = 0; place < usable_here.size(); ++place) {
      const Choice& choice = usable_here[place];
      if (!counts(choice, answers[target])) continue;
      Candidate& candidate = all[key_of(choice.wheel)];
      if (candidate.choice == nullptr || choice.verdict.fit > candidate.choice->verdict.fit)
        candidate.choice = &choice;
      candidate.serves |= uint64_t{1} << target;
      candidate.rank[target] = place;
    }
  }
  std::vector<Candidate> out;
  for (auto& [key, candidate] : all) out.push_back(std::move(candidate));
  return out;
}

size_t total_rank(const Candidate& candidate) {
  size_t sum = 0;
  for (const auto& [target, place] : candidate.rank) sum += place;
  return sum;
}

// Of the wheels that serve exactly the same targets the one that is best for them together.
std::vector<Candidate> best_of_each_set(std::vector<Candidate> all) {
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    if (a.serves != b.serves) return a.serves < b.serves;
    return total_rank(a) < total_rank(b);
  });
  std::vector<Candidate> kept;
  for (Candidate& candidate : all)
    if (kept.empty() || kept.back().serves != candidate.serves)
      kept.push_back(std::move(candidate));
  return kept;
}

struct Search {
  const std::vector<Candidate>& candidates;
  uint64_t wanted;
  std::vector<size_t> chosen, best;
  size_t best_cost = SIZE_MAX;

  // The place of each target's wheel among its choices, summed: 0 = everybody has the best.
  size_t cost() const {
    size_t sum = 0;
    for (size_t target = 0; target < k_most_targets; ++target) {
      if ((wanted >> target & 1u) == 0) continue;
      size_t least = SIZE_MAX;
      for (size_t index : chosen) {
        const auto found = candidates[index].rank.find(target);
        if (found != candidates[index].rank.end()) least = std::min(least, found->second);
      }
      sum += least;
    }
    return sum;
  }
  void go(uint64_t covered, size_t left) {
    if (covered == wanted) {
      const size_t found = cost();
      if (found < best_cost) {
        best_cost = found;
        best = chosen;
      }
      return;
    }
    if (left == 0) return;
    size_t target = 0;  // the first that nobody serves yet: some chosen wheel must
    while ((covered >> target & 1u) != 0 || (wanted >> target & 1u) == 0) ++target;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if ((candidates[i].serves >> target & 1u) == 0) continue;
      chosen.push_back(i);
      go(covered | candidates[i].serves, left - 1);
      chosen.pop_back();
    }
  }
};

std::string unique_name(const Wheel& wheel, const std::vector<Class>& classes, bool shared_tag,
                        bool shared_platform) {
  std::string name = wheel.tag;
  if (shared_platform) name += "-" + wheel.platform.substr(wheel.platform.find('_') + 1);
  if (shared_tag) {
    std::string torch;
    for (char c : wheel.torch)
      if (c != '.') torch += c;
    name += "-torch" + torch;
  }
  std::string tried = name;
  for (int n = 2; std::any_of(classes.begin(), classes.end(),
                              [&](const Class& one) { return one.name == tried; });
       ++n)
    tried = name + "-" + std::to_string(n);
  return tried;
}

void name_classes(std::vector<Class>& classes) {
  for (Class& one : classes) {
    bool tag = false, platform = false;
    for (const Class& other : classes) {
      if (&other == &one || other.choice.wheel.tag != one.choice.wheel.tag) continue;
      const bool elsewhere = other.choice.wheel.platform != one.choice.wheel.platform;
      platform = platform || elsewhere;
      tag = tag || !elsewhere;
    }
    one.name = unique_name(one.choice.wheel, classes, tag, platform);
  }
}

}  // namespace

void replace_choice(Plan& plan, size_t index, Choice choice) {
  plan.classes[index].choice = std::move(choice);
  for (Class& one : plan.classes) one.name.clear();
  name_classes(plan.classes);
}

Plan plan_classes(const std::vector<Target>& targets, const Request& request,
                  const Knowledge& knowledge) {
  Plan plan;
  std::vector<Answer> answers;
  for (const Target& target : targets) {
    Answer answer = resolve(target, request, knowledge);
    if (!answer.usable.empty()) {
      answers.push_back(std::move(answer));
      continue;
    }
    // One environment per group where no wheel serves all GPUs of the machine together.
    for (Answer& group : answer.groups) {
      if (group.usable.empty())
        plan.failed.push_back(std::move(group));
      else
        answers.push_back(std::move(group));
    }
    if (answer.groups.empty()) plan.failed.push_back(std::move(answer));
  }
  plan.over_limit = answers.size() > k_most_targets ? answers.size() : 0;
  if (plan.over_limit > 0) return plan;
  for (const Answer& answer : answers) plan.targets.push_back(answer.target);
  if (answers.empty()) return plan;
  const std::vector<Candidate> candidates = best_of_each_set(candidates_of(answers));
  Search search{candidates,
                answers.size() == 64 ? ~uint64_t{0} : (uint64_t{1} << answers.size()) - 1,
                {},
                {}};
  for (size_t count = 1; search.best.empty() && count <= answers.size(); ++count)
    search.go(0, count);
  for (size_t index : search.best) {
    Class one;
    one.choice = *candidates[index].choice;
    plan.classes.push_back(std::move(one));
  }
  std::stable_sort(plan.classes.begin(), plan.classes.end(), [](const Class& a, const Class& b) {
    const auto x = parse_version(a.choice.wheel.torch), y = parse_version(b.choice.wheel.torch);
    if (a.choice.wheel.is_cpu() != b.choice.wheel.is_cpu()) return b.choice.wheel.is_cpu();
    return x && y && *x > *y;
  });
  // Every target goes to the first class that serves it: that is the one `cufit run` takes.
  for (size_t target = 0; target < answers.size(); ++target) {
    for (Class& one : plan.classes) {
      const Key key = key_of(one.choice.wheel);
      const auto& list = answers[target].usable;
      const bool serves = std::any_of(list.begin(), list.end(), [&](const Choice& choice) {
        return counts(choice, answers[target]) && key_of(choice.wheel) == key;
      });
      if (!serves) continue;
      one.targets.push_back(target);
      break;
    }
  }
  name_classes(plan.classes);
  return plan;
}

}  // namespace cufit::resolve
