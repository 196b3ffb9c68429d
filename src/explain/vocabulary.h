// SPDX-License-Identifier: Apache-2.0
// How likely each cause is by the words that a text holds and the clues that it gives
// (data/vocabulary.toml), whatever it says with them. Words prove nothing: this orders what
// signatures leave open, and names candidates for a failure that no signature knows.
//
// A word: a run of ASCII letters, digits, '_' and '.', in lower case, without digits before its
// first other sign and without dots and underscores at its ends; also the parts of such a run
// between dots and underscores from three signs on; also each Chinese character. It holds a letter.
// Not counted: addresses (https://...), and what follows "Tried to allocate" in a line.
//
// A clue that was added after the table was learned is no word of it. The word "@" says how
// strongly it speaks for each cause whose signs ask for it: as known clues do on average. One that
// no sign asks for, as it only chooses a step, does not count.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/prose/text_lines.h"
#include "knowledge/knowledge.h"

namespace cufit::explain {

std::set<std::string> vocabulary_words(std::string_view text);

struct WordVote {
  std::string_view cause;  // id of a finding
  double probability = 0;  // those of all causes add up to 1
  bool memory = false;     // a cause of running out of memory
  double kind = 1;         // probability that the text is about causes of its kind (memory or not)
  double of_kind = 0;      // its probability among these: probability = kind * of_kind
};
struct Votes {
  std::vector<WordVote> causes;  // most likely first; empty where no word of the table is there
  double needs_none = 0;         // probability that the text reports no failure of ours
};

// `clues`: names of those that the text gives (data/clues).
Votes vote(std::span<const formats::TextLine> lines, std::span<const std::string_view> clues,
           const knowledge::Knowledge& knowledge);

// The line whose words speak most for the cause; number 0 = none does.
struct TellingLine {
  uint64_t number = 0;
  std::string text;
};
TellingLine telling_line(std::span<const formats::TextLine> lines,
                         const knowledge::Knowledge& knowledge, std::string_view cause);

}  // namespace cufit::explain
