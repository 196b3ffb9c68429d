// SPDX-License-Identifier: Apache-2.0
// Finds many short literals in a text at once, whatever the ASCII case, at memory speed: the three
// bytes before each place are looked up in a bit table that stays in the first-level cache, only
// where that says "perhaps" the four bytes in a second one, and only then are literals compared.
// Ready after one pass over the literals: compiling the thousands of patterns behind them, or an
// automaton for them, would cost more than reading a usual paste. White space of any kind counts as
// a blank, so that a literal of several words is found across a line break.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace cufit::explain {

class LiteralSearch {
 public:
  // Literals are lower case, of 3 to 255 bytes, and must outlive the search.
  explicit LiteralSearch(std::span<const std::string_view> literals);
  // The same without those that `skip` marks, faster on texts like `sample`; numbers of literals
  // stay.
  LiteralSearch(const LiteralSearch& other, const std::vector<bool>& skip, std::string_view sample);

  size_t size() const { return literals_.size(); }

  // Calls on_hit(literal, begin) for every occurrence, in order of the place. on_hit returns where
  // to go on: anything up to the place itself to see every hit, or a later place to skip text.
  template <class OnHit>
  void each(std::string_view text, OnHit&& on_hit) const {
    if (text.size() < 3) return;
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    uint32_t window = 0;  // the last four bytes, folded; zeros before the text
    for (size_t i = 0; i < 2; ++i) window = (window << 8) | fold_[bytes[i]];
    for (size_t i = 2; i < text.size(); ++i) {
      window = (window << 8) | fold_[bytes[i]];
      if (!is_set(ends_, hash(window & k_three, k_end_bits))) continue;
      size_t resume = 0;
      if (is_set(fours_, hash(window, k_four_bits))) look_up(window, 4, i, text, resume, on_hit);
      if (any_three_) look_up(window & k_three, 3, i, text, resume, on_hit);
      if (resume > i) {  // go on as if the text began there
        if (resume + 3 > text.size()) return;
        window = 0;
        for (i = resume; i < resume + 2; ++i) window = (window << 8) | fold_[bytes[i]];
        --i;
      }
    }
  }

 private:
  struct Entry {
    uint32_t window, literal, next;
    uint8_t offset, bytes;  // of the window in the literal; 3 or 4
  };
  static constexpr uint32_t k_three = 0xFFFFFF, k_end_bits = 17, k_four_bits = 18,
                            k_bucket_bits = 12;
  static uint32_t hash(uint32_t window, uint32_t bits) {
    return (window * 0x9E3779B1u) >> (32 - bits);
  }
  static bool is_set(const std::vector<uint64_t>& bits, uint32_t slot) {
    return (bits[slot >> 6] >> (slot & 63)) & 1;
  }

  template <class OnHit>
  void look_up(uint32_t window, size_t width, size_t last, std::string_view text, size_t& resume,
               OnHit& on_hit) const {
    for (uint32_t e = first_[hash(window, k_bucket_bits)]; e != 0; e = entries_[e].next) {
      const Entry& entry = entries_[e];
      if (entry.window != window || entry.bytes != width || entry.offset + width > last + 1)
        continue;
      const size_t begin = last + 1 - width - entry.offset;
      if (!equal(text, begin, literals_[entry.literal])) continue;
      const size_t wanted = on_hit(entry.literal, begin);
      if (wanted > resume) resume = wanted;
    }
  }
  using Counts = std::vector<uint32_t>;  // of runs of three bytes, by hash
  Counts count_runs(std::string_view sample) const;
  size_t rarest_window(std::string_view literal, size_t width, const Counts& counts) const;
  void add(uint32_t literal, const Counts& counts);
  bool equal(std::string_view text, size_t begin, std::string_view literal) const;

  std::vector<std::string_view> literals_;
  unsigned char fold_[256];
  // Bits for the last three bytes of every window, and for windows of four.
  std::vector<uint64_t> ends_, fours_;
  bool any_three_ = false;
  std::vector<uint32_t> first_;
  std::vector<Entry> entries_;  // [0] is no entry
};

}  // namespace cufit::explain
