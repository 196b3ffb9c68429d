// SPDX-License-Identifier: Apache-2.0
// Which patterns of the finding and clue files match a text, and where. A pattern is compiled only
// when its word is in the text and its other literals (PatternRow::shape) stand near it in their
// order, and is matched on the line of that word and two lines around it, so that a message that a
// terminal has wrapped is still found.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "explain/literal_search.h"
#include "explain/text_window.h"
#include "formats/prose/text_lines.h"
#include "knowledge/knowledge.h"

namespace cufit::explain {

struct Match {
  uint64_t line = 0;
  std::string text;     // the line in which the match begins, shortened around it
  bool printed = true;  // by a program, not told by somebody (provenance.h)
};

// A line as evidence shows it: at most 240 bytes around `at`, whole characters, "..." where cut.
std::string shortened(std::string_view line, size_t at);

// The patterns of a knowledge and the search for their words; serves any number of texts.
class PatternSearch {
 public:
  explicit PatternSearch(const knowledge::Knowledge& knowledge);

  const knowledge::Knowledge& knowledge() const { return knowledge_; }
  const LiteralSearch& words() const { return words_; }

 private:
  const knowledge::Knowledge& knowledge_;
  LiteralSearch words_;
};

// One text under search. Clues are asked for first and the signs that they leave possible after, so
// that what is compiled for the one serves the other and nothing is compiled in vain.
class TextSearch {
 public:
  using Group = std::span<const uint32_t>;  // numbers of patterns: any of them

  // `lines` must outlive the search.
  TextSearch(const PatternSearch& patterns, std::span<const formats::TextLine> lines);
  ~TextSearch();
  TextSearch(const TextSearch&) = delete;
  TextSearch& operator=(const TextSearch&) = delete;

  // The first matches of each group, one per line, in the order of the text. After its first match
  // a group has no further pattern compiled: whether it matches is what counts. Groups that share
  // no pattern are looked for on several threads; what is found does not depend on how many.
  std::vector<std::vector<Match>> find(std::span<const Group> groups);

  static constexpr size_t k_matches_per_group = 3;

 private:
  class Pattern;
  class Pass;
  using Matches = std::vector<std::vector<Match>>;
  struct Hit {
    uint32_t word, line;  // index of the line
    size_t column;
  };
  void find_words();
  void keep_windows();

  const PatternSearch& patterns_;
  std::span<const formats::TextLine> lines_;
  std::string all_;  // lines in one piece: a literal of several words is found across a line break
  std::vector<size_t> begins_;   // of the lines, in all_
  std::vector<bool> repeated_;   // a line that stands there a third time says nothing new
  std::vector<Pattern> states_;  // by number of the pattern
  std::vector<Hit> hits_;        // words of patterns, in the order of the text
  // Around lines with hits that have one window whatever the column, as far as few are kept: by
  // index of the line.
  std::unordered_map<size_t, Window> windows_;
};

}  // namespace cufit::explain
