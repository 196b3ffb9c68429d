// SPDX-License-Identifier: Apache-2.0
// Two machines (or environments) side by side: the engine judges both, and what only one of them is
// told, with the facts it rests on, comes before the plain differences.
#pragma once

#include <string>
#include <vector>

#include "checks/finding.h"
#include "knowledge/knowledge.h"
#include "resolve/diff/fact_difference.h"

namespace cufit::resolve {

struct MachineSide {
  facts::Facts facts;
  checks::Report report;
  // The environment that is compared: the one that decides the verdict; null = several or none.
  const facts::PythonEnv* env() const;
  size_t env_index = npos;
  static constexpr size_t npos = static_cast<size_t>(-1);
};

struct FindingChange {
  enum class Where { only_a, only_b, both };  // both: of another severity
  Where where = Where::only_b;
  const checks::Finding *a = nullptr, *b = nullptr;  // in the sides' reports
  // Differences that the finding's evidence names: indices into facts and packages.
  std::vector<size_t> facts, packages;
};

struct MachineDifference {
  // Which side is judged worse; neither where both are judged alike.
  enum class Worse { neither, a, b } worse = Worse::neither;
  // Of a pasted text that does not say whether PyTorch runs nobody can tell: worse is neither then.
  bool unranked = false;
  std::vector<FindingChange> findings;  // the likely culprit first: errors of the worse side
  // Both have them, one of them perhaps as what follows from another finding: no reason for a
  // difference.
  std::vector<FindingChange> shared;
  std::vector<PackageChange> packages;
  FactComparison facts;
  bool env_compared = false;
  bool differs = false;  // something that matters
};

// The sides must outlive the answer.
MachineSide machine_side(facts::Facts facts, const knowledge::Knowledge& knowledge);
MachineDifference compare_machines(const MachineSide& a, const MachineSide& b);

// 0 works, 1 limited, 2 unknown, 3 broken.
int badness(checks::LinkState verdict);

}  // namespace cufit::resolve
