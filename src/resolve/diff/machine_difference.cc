// SPDX-License-Identifier: Apache-2.0
#include "resolve/diff/machine_difference.h"

#include <algorithm>

#include "base/format.h"
#include "checks/doctor.h"
#include "checks/torch_env.h"

namespace cufit::resolve {
namespace {

using checks::Finding;
using checks::Severity;
using Where = FindingChange::Where;

bool is_complete(const MachineSide& side) {
  return side.facts.origin == "live" || side.facts.origin == "recording";
}

FactSide fact_side(const MachineSide& side, bool with_env) {
  FactSide out;
  out.facts = list_machine(side.facts);
  out.complete = is_complete(side);
  out.container = checks::in_container(side.facts);
  if (!with_env) return out;
  for (ListedFact& fact : list_env(*side.env())) out.facts.push_back(std::move(fact));
  return out;
}

// "12.1" and "12.1.105" are one version, told more or less exactly.
bool same_as_far_as_told(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b == a || (starts_with(b, a) && b[a.size()] == '.');
}

// A text tells a toolkit's version and not where it lies: it is the one whose nvcc is in PATH, or
// the only one, and beside several it is known of neither side which they are.
void place_claimed_toolkit(FactSide& text, const FactSide& other) {
  const auto is_toolkit = [](const ListedFact& fact) { return fact.field == "toolkits[]"; };
  const auto count = std::count_if(other.facts.begin(), other.facts.end(), is_toolkit);
  for (ListedFact& fact : text.facts) {
    if (!is_toolkit(fact) || fact.key != "(claimed)" || count == 0) continue;
    const auto there =
        std::find_if(other.facts.begin(), other.facts.end(), [&](const ListedFact& one) {
          return is_toolkit(one) && (count == 1 || contains(one.value, ", its nvcc"));
        });
    if (there == other.facts.end()) {
      fact.of_list = false;
      continue;
    }
    fact.key = there->key;
    const size_t comma = std::min(there->value.find(','), there->value.size());
    const bool same = same_as_far_as_told(fact.value, there->value.substr(0, comma));
    fact.value = same ? there->value : fact.value + there->value.substr(comma);
  }
}

// Environments lie elsewhere on another machine: the compared ones are one subject.
std::string subject_of(const Finding& finding, const MachineSide& side) {
  const facts::PythonEnv* env = side.env();
  if (env == nullptr || env->path.empty()) return finding.subject;
  if (finding.subject == "env " + env->path) return "env";
  if (starts_with(finding.subject, env->path + "/"))
    return "env" + finding.subject.substr(env->path.size());
  return finding.subject;
}

const Finding& worst_of(const FindingChange& change) {
  if (change.a == nullptr) return *change.b;
  if (change.b == nullptr) return *change.a;
  return seriousness(change.a->severity) > seriousness(change.b->severity) ? *change.a : *change.b;
}

// Of an environment beside the one that is compared.
bool is_elsewhere(const Finding& finding, const MachineSide& side) {
  for (const facts::PythonEnv& env : side.facts.envs)
    if (&env != side.env() &&
        (finding.subject == "env " + env.path || starts_with(finding.subject, env.path + "/")))
      return subject_of(finding, side) == finding.subject;
  return false;
}

// Errors of the worse side, then its warnings; what is only on the better side cannot be why the
// other one fails, nor can another environment be, and notes never are.
int culprit_rank(const FindingChange& change, const MachineSide& a, const MachineSide& b,
                 MachineDifference::Worse worse) {
  int severity = 4 - seriousness(worst_of(change).severity);
  if (change.a != nullptr ? is_elsewhere(*change.a, a) : is_elsewhere(*change.b, b)) severity += 5;
  const Where failing = worse == MachineDifference::Worse::a ? Where::only_a : Where::only_b;
  const bool points = change.where == failing || change.where == Where::both;
  return severity + (points || worse == MachineDifference::Worse::neither ? 0 : 10);
}

// A variable is also named where evidence says what it did: "... (LD_LIBRARY_PATH)".
bool names(const std::vector<checks::Evidence>& evidence, const std::vector<std::string>& places,
           bool variable = false) {
  for (const checks::Evidence& item : evidence) {
    if (item.kind == "rule" || item.kind == "table") continue;
    for (const std::string& place : places)
      if (!place.empty() &&
          (place == item.detail || (variable && contains(item.value, "(" + place + ")"))))
        return true;
  }
  return false;
}

// The other side has it too, below a cause that it has besides.
bool follows(const Finding& finding, const MachineSide& side) {
  for (const Finding& cause : side.report.findings)
    for (const std::string& id : cause.consequences)
      if (id == finding.id) return true;
  return false;
}

// Where the records of a package lie: evidence about a package names them.
std::vector<std::string> places_of(const MachineSide& side, const std::string& package) {
  std::vector<std::string> out;
  const facts::PythonEnv* env = side.env();
  if (env == nullptr || !env->distributions) return out;
  for (const facts::Distribution& one : *env->distributions)
    if (one.name == package) {
      out.push_back(one.location);
      out.push_back(one.location + "/METADATA");
    }
  return out;
}

class Builder {
 public:
  Builder(const MachineSide& a, const MachineSide& b) : a_(a), b_(b) {}

  MachineDifference build() {
    out_.env_compared = a_.env() != nullptr && b_.env() != nullptr;
    if (out_.env_compared && a_.env()->distributions && b_.env()->distributions)
      out_.packages =
          compare_packages(resolve::packages_of(*a_.env()), resolve::packages_of(*b_.env()));
    forget_untold();
    FactSide a = fact_side(a_, out_.env_compared), b = fact_side(b_, out_.env_compared);
    if (!a.complete && b.complete) place_claimed_toolkit(a, b);
    if (!b.complete && a.complete) place_claimed_toolkit(b, a);
    out_.facts = compare_facts(a, b, out_.packages);
    for (const MachineSide* side : {&a_, &b_})
      out_.unranked = out_.unranked ||
                      (!is_complete(*side) && side->report.verdict == checks::LinkState::unknown);
    const int worse = out_.unranked ? 0 : badness(b_.report.verdict) - badness(a_.report.verdict);
    out_.worse = worse > 0   ? MachineDifference::Worse::b
                 : worse < 0 ? MachineDifference::Worse::a
                             : MachineDifference::Worse::neither;
    findings();
    for (FindingChange& change : out_.findings) link(change);
    out_.differs = worse != 0 || !out_.packages.empty() || !out_.findings.empty();
    for (const FactChange& change : out_.facts.changes)
      out_.differs = out_.differs || change.weight == Weight::matters;
    return std::move(out_);
  }

 private:
  // A pasted text names the packages that it names.
  void forget_untold() {
    const bool told_a = is_complete(a_), told_b = is_complete(b_);
    std::vector<PackageChange> kept;
    for (PackageChange& change : out_.packages)
      if ((told_a || !change.a.empty()) && (told_b || !change.b.empty()))
        kept.push_back(std::move(change));
    out_.packages = std::move(kept);
  }

  void findings() {
    std::vector<bool> taken(b_.report.findings.size());
    for (const Finding& one : a_.report.findings) {
      const Finding* other = nullptr;
      for (size_t i = 0; i < taken.size() && other == nullptr; ++i) {
        const Finding& candidate = b_.report.findings[i];
        if (taken[i] || candidate.id != one.id || subject_of(candidate, b_) != subject_of(one, a_))
          continue;
        taken[i] = true;
        other = &candidate;
      }
      if (other == nullptr) {
        (follows(one, b_) ? out_.shared : out_.findings)
            .push_back({Where::only_a, &one, nullptr, {}, {}});
      } else if (other->severity != one.severity) {
        out_.findings.push_back({Where::both, &one, other, {}, {}});
      } else {
        out_.shared.push_back({Where::both, &one, other, {}, {}});
      }
    }
    for (size_t i = 0; i < taken.size(); ++i) {
      if (taken[i]) continue;
      const Finding& one = b_.report.findings[i];
      (follows(one, a_) ? out_.shared : out_.findings)
          .push_back({Where::only_b, nullptr, &one, {}, {}});
    }
    const MachineDifference::Worse worse = out_.worse;
    std::stable_sort(out_.findings.begin(), out_.findings.end(),
                     [&](const FindingChange& x, const FindingChange& y) {
                       return culprit_rank(x, a_, b_, worse) < culprit_rank(y, a_, b_, worse);
                     });
  }

  void link(FindingChange& finding) const {
    link_facts(finding, Weight::matters);
    if (finding.facts.empty()) link_facts(finding, Weight::implied);
    for (size_t i = 0; i < out_.packages.size(); ++i) {
      const std::string& name = out_.packages[i].name;
      if ((finding.a != nullptr && names(finding.a->evidence, places_of(a_, name))) ||
          (finding.b != nullptr && names(finding.b->evidence, places_of(b_, name))))
        finding.packages.push_back(i);
    }
  }

  // Variables first: they are why another file was found.
  void link_facts(FindingChange& finding, Weight weight) const {
    std::vector<size_t> variables, others;
    for (size_t i = 0; i < out_.facts.changes.size(); ++i) {
      const FactChange& change = out_.facts.changes[i];
      if (change.weight != weight) continue;
      const bool variable = change.topic == Topic::variables;
      if ((finding.a != nullptr && names(finding.a->evidence, change.places_a, variable)) ||
          (finding.b != nullptr && names(finding.b->evidence, change.places_b, variable)))
        (variable ? variables : others).push_back(i);
    }
    finding.facts = std::move(variables);
    finding.facts.insert(finding.facts.end(), others.begin(), others.end());
  }

  const MachineSide &a_, &b_;
  MachineDifference out_;
};

}  // namespace

const facts::PythonEnv* MachineSide::env() const {
  return env_index == npos ? nullptr : &facts.envs[env_index];
}

int badness(checks::LinkState verdict) {
  switch (verdict) {
    case checks::LinkState::ok:
      return 0;
    case checks::LinkState::limited:
      return 1;
    case checks::LinkState::unknown:
      return 2;
    case checks::LinkState::broken:
      return 3;
  }
  return 2;
}

MachineSide machine_side(facts::Facts facts, const knowledge::Knowledge& knowledge) {
  MachineSide side;
  side.facts = std::move(facts);
  side.report = checks::examine(side.facts, knowledge);
  if (const facts::PythonEnv* env = checks::main_env(side.facts))
    side.env_index = static_cast<size_t>(env - side.facts.envs.data());
  return side;
}

MachineDifference compare_machines(const MachineSide& a, const MachineSide& b) {
  return Builder(a, b).build();
}

}  // namespace cufit::resolve
