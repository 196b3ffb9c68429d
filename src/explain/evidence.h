// SPDX-License-Identifier: Apache-2.0
// What the text says in terms of data/clues and data/findings: which clues are there, which signs
// match, each with its lines. The scores are made of this (scores.cc).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "explain/explain.h"
#include "explain/oom_clues.h"
#include "explain/outcome.h"
#include "explain/pattern_search.h"

namespace cufit::explain {

struct SignHit {
  const knowledge::SignRow* sign;
  std::vector<EvidenceLine> lines;
  bool printed = true;    // one of its lines at least is a program's own
  size_t own = SIZE_MAX;  // the first of the lines are its patterns'; the others its clues'
};

struct TextEvidence {
  std::map<std::string_view, std::vector<EvidenceLine>> clues;  // those that are there
  std::vector<std::vector<SignHit>> signs;                      // by index of the finding
  Outcome outcome;

  bool has(std::string_view clue) const { return clues.count(clue) != 0; }
};

// `computed` is asked once, when the clues of the text itself have been looked for.
TextEvidence read_evidence(const knowledge::Knowledge& knowledge, const PatternSearch& patterns,
                           std::span<const formats::TextLine> lines,
                           const std::function<std::vector<ComputedClue>()>& computed);

}  // namespace cufit::explain
