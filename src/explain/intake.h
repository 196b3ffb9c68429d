// SPDX-License-Identifier: Apache-2.0
// Reads a text of any length in one pass and keeps what can matter: all of it up to a mebibyte, of
// longer ones the beginning, the end, and the surroundings of every place that holds a word of some
// signature. Memory stays flat, and everything after this works on a few MiB at most.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "explain/literal_search.h"
#include "formats/prose/text_decoder.h"
#include "formats/prose/text_lines.h"

namespace cufit::explain {

class Intake {
 public:
  explicit Intake(const LiteralSearch& words);

  void add(std::string_view bytes);
  // Another text follows, in an encoding of its own. Returns the number of its first line.
  uint64_t begin_text();
  // Lines with their numbers in the input, in order; call once.
  std::vector<formats::TextLine> finish();

  uint64_t lines() const { return lines_; }  // of the whole input
  bool thinned() const { return thinned_; }  // some lines were not kept

 private:
  void take_block(bool last);
  void break_long_lines(size_t from);
  // `offset`: of the block in the whole decoded input.
  void keep(std::string_view block, uint64_t first_number, uint64_t offset, size_t begin,
            size_t end);
  void search(std::string_view block, uint64_t first_number);
  bool is_text(std::string_view block);

  LiteralSearch words_;  // those that may still be looked for
  formats::TextDecoder decoder_;
  std::string block_;          // decoded, not yet taken
  uint64_t block_number_ = 1;  // of its first line
  std::string previous_;       // the block before, for the end of the text
  uint64_t previous_number_ = 1;
  uint64_t block_offset_ = 0, previous_offset_ = 0;  // in the decoded input
  size_t line_bytes_ = 0;                            // of the last line of block_
  size_t carried_ = 0;  // bytes at the beginning of block_ that were taken before
  uint64_t taken_bytes_ = 0, kept_bytes_ = 0, lines_ = 0;
  bool thinned_ = false;
  std::vector<uint16_t> seen_;  // places per word
  std::vector<bool> enough_;    // words that were seen often enough
  bool words_changed_ = false;
  // By line number and place in the input: a long line comes in pieces, over several blocks.
  std::map<std::pair<uint64_t, uint64_t>, std::string> kept_;
};

}  // namespace cufit::explain
