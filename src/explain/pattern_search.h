// SPDX-License-Identifier: Apache-2.0
// Which patterns of the finding and clue files match a text, and where. A pattern is compiled only
// when its word (PatternRow::literal) is in the text, with its further words near it, and is
// matched on the line of that word and two lines around it, so that a message that a terminal has
// wrapped is still found.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explain/literal_search.h"
#include "formats/text_lines.h"
#include "knowledge/knowledge.h"

namespace cufit::explain {

struct Match {
  uint64_t line = 0;
  std::string text;  // the line in which the match begins, shortened around it
};

// A line as evidence shows it: at most 240 bytes around `at`, whole characters, "..." where cut.
std::string shortened(std::string_view line, size_t at);

class PatternSearch {
 public:
  explicit PatternSearch(const knowledge::Knowledge& knowledge);

  const LiteralSearch& words() const { return words_; }

  // Matches of each pattern text, at most k_matches_per_pattern, in the order of the text.
  std::vector<std::vector<Match>> find(std::span<const formats::TextLine> lines) const;
  // Those of a pattern by its number.
  const std::vector<Match>& of(const std::vector<std::vector<Match>>& found, size_t number) const {
    return found[order_[number]];
  }
  // Patterns are numbered in order: clues', then those of the findings' signs.
  size_t clue_begin(size_t clue) const { return clue_begin_[clue]; }
  size_t sign_begin(size_t finding, size_t sign) const { return sign_begin_[finding][sign]; }

  static constexpr size_t k_matches_per_pattern = 4;

 private:
  std::vector<std::string_view> collect(const knowledge::Knowledge& knowledge);

  std::vector<const knowledge::PatternRow*> patterns_;  // each text once
  std::vector<uint32_t> order_;                         // numbers of patterns -> patterns_
  std::vector<std::vector<uint32_t>> patterns_of_word_;
  std::vector<size_t> clue_begin_;
  std::vector<std::vector<size_t>> sign_begin_;
  LiteralSearch words_;  // last: collect() fills what is above
};

}  // namespace cufit::explain
