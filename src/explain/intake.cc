// SPDX-License-Identifier: Apache-2.0
#include "explain/intake.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "formats/prose/gbk.h"
#include "formats/prose/printable.h"

namespace cufit::explain {
namespace {

constexpr size_t k_block_bytes = 1 << 20;
constexpr size_t k_sample_bytes = 64 << 10;
constexpr size_t k_head_bytes = 256 << 10;  // kept in full
constexpr size_t k_tail_bytes = 256 << 10;  // kept in full
constexpr size_t k_kept_bytes = 2 << 20;    // of the middle
constexpr size_t k_intake_longest_line = 16 << 10;
constexpr size_t k_cut_back = 256;
// More control characters than this (of 256 bytes) has no text; random bytes have 27.
constexpr size_t k_control_share = 10;
constexpr uint16_t k_places_per_word =
    8;  // in the middle: what comes a ninth time is the log's own vocabulary
constexpr int k_lines_before = 6, k_lines_after = 12;  // a traceback above, a table below

bool ends_line(char c) { return c == '\n' || c == '\v'; }

// std::count is a loop over bytes here; memchr is not.
uint64_t count_lines(std::string_view text) {
  uint64_t count = 0;
  while (!text.empty()) {
    const void* found = std::memchr(text.data(), '\n', text.size());
    if (!found) break;
    ++count;
    text.remove_prefix(static_cast<size_t>(static_cast<const char*>(found) - text.data()) + 1);
  }
  return count;
}

size_t line_begin(std::string_view text, size_t at) {
  while (at > 0 && !ends_line(text[at - 1])) --at;
  return at;
}
size_t line_end(std::string_view text, size_t at) {  // after the line break
  while (at < text.size() && !ends_line(text[at])) ++at;
  return std::min(at + 1, text.size());
}

}  // namespace

Intake::Intake(const LiteralSearch& words)
    : words_(words), seen_(words.size()), enough_(words.size()) {}

void Intake::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t piece = std::min(bytes.size(), k_block_bytes);
    const size_t from = block_.size();
    decoder_.add(bytes.substr(0, piece), block_);
    break_long_lines(from);
    bytes.remove_prefix(piece);
    if (block_.size() >= k_block_bytes + carried_) take_block(false);
  }
}

// A line without end becomes pieces of one line (a vertical tab between them), as a progress bar's
// drawings are: everything after works on lines of a bounded length.
void Intake::break_long_lines(size_t from) {
  std::string broken;  // only when there is such a line
  size_t done = from;
  for (size_t at = from; at < block_.size();) {
    const auto* end = static_cast<const char*>(std::memchr(&block_[at], '\n', block_.size() - at));
    const size_t stop = end ? static_cast<size_t>(end - block_.data()) : block_.size();
    while (line_bytes_ + (stop - at) > k_intake_longest_line) {
      const size_t fits = k_intake_longest_line - std::min(k_intake_longest_line, line_bytes_);
      // At a blank where one is near, so that no word of a message is cut in two.
      size_t cut = at + fits;
      while (cut > at && at + fits - cut < k_cut_back && block_[cut - 1] != ' ') --cut;
      if (cut == at || block_[cut - 1] != ' ') cut = at + fits;
      broken.append(block_, done, cut - done);
      broken += '\v';
      at = done = cut;
      line_bytes_ = 0;
    }
    line_bytes_ = end ? 0 : line_bytes_ + (stop - at);
    at = stop + 1;
  }
  if (done == from) return;
  broken.append(block_, done, std::string::npos);
  block_.replace(from, std::string::npos, broken);
}

uint64_t Intake::begin_text() {
  decoder_.finish(block_);
  decoder_ = formats::TextDecoder();
  if (!block_.empty() && block_.back() != '\n') block_ += '\n';
  line_bytes_ = 0;
  return block_number_ + count_lines(block_);
}

// Lines [begin, end) of the block into kept_, pieces of overlong lines included.
void Intake::keep(std::string_view block, uint64_t first_number, uint64_t offset, size_t begin,
                  size_t end) {
  uint64_t number = first_number + count_lines(block.substr(0, begin));
  while (begin < end) {
    size_t stop = begin;
    while (stop < end && !ends_line(block[stop])) ++stop;
    for (size_t from = begin; from == begin || from < stop; from += k_intake_longest_line) {
      std::string_view text = block.substr(from, std::min(k_intake_longest_line, stop - from));
      if (text.empty() && from != begin) break;
      auto [place, is_new] = kept_.try_emplace({number, offset + from});
      if (is_new) {
        const std::optional<std::string> chinese = formats::utf8_of_gbk(text);
        place->second = formats::printable(chinese ? *chinese : text, k_intake_longest_line);
        kept_bytes_ += place->second.size() + 64;
      }
    }
    if (stop < end && block[stop] == '\n') ++number;
    begin = stop + 1;
  }
}

void Intake::search(std::string_view block, uint64_t first_number) {
  size_t counted = 0;  // number of the line at `counted` is `number`
  uint64_t number = first_number;
  words_.each(block, [&](uint32_t word, size_t at) -> size_t {
    if (enough_[word]) return 0;
    if (++seen_[word] >= k_places_per_word) enough_[word] = words_changed_ = true;
    size_t begin = line_begin(block, at), end = line_end(block, at);
    const size_t next = end;
    for (int i = 0; i < k_lines_before && begin > 0; ++i) begin = line_begin(block, begin - 1);
    for (int i = 0; i < k_lines_after && end < block.size(); ++i) end = line_end(block, end);
    if (begin < counted) counted = 0, number = first_number;
    number += count_lines(block.substr(counted, begin - counted));
    counted = begin;
    keep(block.substr(begin, end - begin), number, block_offset_ + begin, 0, end - begin);
    return next;  // one hit is enough to keep a line
  });
}

// What is mostly not printable has words by accident only. Asked of a block's beginning and end.
bool Intake::is_text(std::string_view block) {
  const auto controls = [](std::string_view part) {
    return static_cast<size_t>(std::count_if(part.begin(), part.end(), [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t' && byte != '\b' &&
             byte != '\v' && byte != '\f' && byte != 0x1B;
    }));
  };
  const std::string_view head = block.substr(0, k_sample_bytes);
  const std::string_view tail = block.substr(block.size() - head.size());
  return controls(head) * 256 <= head.size() * k_control_share ||
         controls(tail) * 256 <= tail.size() * k_control_share;
}

void Intake::take_block(bool last) {
  // Cut at a line end; a block without one is cut anywhere.
  size_t cut = block_.size();
  if (!last) {
    while (cut > carried_ && !ends_line(block_[cut - 1])) --cut;
    if (cut == carried_) cut = block_.size();
  }
  const std::string_view block(block_.data(), cut);
  if (!is_text(block)) {
    thinned_ = thinned_ || !last || taken_bytes_ != 0;
  } else if (taken_bytes_ == 0 && last) {
    keep(block, block_number_, block_offset_, 0, block.size());
  } else {
    if (taken_bytes_ == 0)
      keep(block, block_number_, block_offset_, 0,
           line_end(block, std::min(k_head_bytes, block.size())));
    kept_bytes_ = taken_bytes_ == 0 ? 0 : kept_bytes_;
    thinned_ = true;
    if (kept_bytes_ < k_kept_bytes) search(block, block_number_);
    // Words that are all over the log would only slow the search down from here on, and so would
    // those that look like its own vocabulary.
    if (words_changed_ || taken_bytes_ == 0)
      words_ = LiteralSearch(words_, enough_, block.substr(0, k_sample_bytes));
    words_changed_ = false;
  }
  taken_bytes_ += cut - carried_;
  // The last lines are searched again with the next block, so that what surrounds a hit is whole.
  size_t carry = cut;
  for (int i = 0; i < k_lines_before + k_lines_after && carry > 0 && cut - carry < (64u << 10); ++i)
    carry = line_begin(block, carry - 1);
  const uint64_t lines_before = count_lines(block.substr(0, carry));
  const uint64_t carry_number = block_number_ + lines_before;
  lines_ = carry_number - 1 + count_lines(block.substr(carry)) +
           (last && cut > 0 && block[cut - 1] != '\n' ? 1 : 0);
  std::string next = std::move(previous_);  // its memory
  next.assign(block_, carry, std::string::npos);
  previous_ = std::move(block_);
  previous_.resize(cut);
  previous_number_ = block_number_;
  previous_offset_ = block_offset_;
  block_offset_ += carry;
  block_ = std::move(next);
  block_number_ = carry_number;
  carried_ = cut - carry;
}

std::vector<formats::TextLine> Intake::finish() {
  decoder_.finish(block_);
  std::string before_last = std::move(previous_);
  const uint64_t before_number = previous_number_, before_offset = previous_offset_;
  const size_t last_bytes = block_.size();
  take_block(true);
  if (thinned_) {
    auto keep_end = [&](const std::string& block, uint64_t number, uint64_t offset, size_t bytes) {
      if (!is_text(block)) return;
      const size_t begin = block.size() > bytes ? line_begin(block, block.size() - bytes) : 0;
      keep(block, number, offset, begin, block.size());
    };
    keep_end(previous_, previous_number_, previous_offset_, k_tail_bytes);
    if (last_bytes < k_tail_bytes)
      keep_end(before_last, before_number, before_offset, k_tail_bytes - last_bytes);
  }
  std::vector<formats::TextLine> out;
  out.reserve(kept_.size());
  for (auto& [place, text] : kept_) {
    // What cufit said of the program it started is no word of that program.
    if (starts_with(text, "cufit: ")) text.clear();
    out.push_back({place.first, std::move(text)});
  }
  kept_.clear();
  return out;
}

}  // namespace cufit::explain
