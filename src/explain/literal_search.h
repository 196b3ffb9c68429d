// SPDX-License-Identifier: Apache-2.0
// Finds many short literals in a text at once, whatever the ASCII case, at memory speed: the three
// bytes before each place choose a mask of a small table, the byte before them a bit of it, and only
// where that says "perhaps" are literals compared. Ready after one pass over the literals: compiling
// the thousands of patterns behind them, or an automaton for them, would cost more than reading a
// usual paste. White space of any kind counts as a blank, so that a literal of several words is
// found across a line break.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
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
    size_t from = 0;  // where the text begins
    for (size_t i = next_end(bytes, 2, text.size()); i < text.size();) {
      uint32_t window = 0;  // the last four bytes, folded; zeros before the text
      for (size_t k = i < from + 3 ? from : i - 3; k <= i; ++k)
        window = (window << 8) | fold_[bytes[k]];
      size_t resume = 0;
      look_up(window, 4, i, text, resume, on_hit);
      if (any_three_) look_up(window & k_three, 3, i, text, resume, on_hit);
      if (resume > i) from = resume;  // go on as if the text began there
      i = next_end(bytes, std::max(i + 1, from + 2), text.size());
    }
  }

 private:
  struct Entry {
    uint32_t window, literal, next;
    uint8_t offset, bytes;  // of the window in the literal; 3 or 4
  };
  static constexpr uint32_t k_three = 0xFFFFFF, k_run_bits = 17, k_mask_bits = 14,
                            k_bucket_bits = 12;
  static uint32_t hash(uint32_t window, uint32_t bits) {
    return (window * 0x9E3779B1u) >> (32 - bits);
  }

  // The mask for the last three of four bytes as they stand in the text; its bit of the first one, modulo 32, says whether
  // the four may be a window. The case of letters is one bit, which is left out of every byte, so that none needs a
  // table; what else that makes equal is sorted out behind.
  static constexpr uint32_t k_any_case = 0x20202020, k_spread = 0x9E3779B1u;
  static uint32_t mask_slot(uint32_t four) {  // 64 KiB: half of it makes twice the false alarms
    static_assert(std::endian::native == std::endian::little);
    return ((four >> 8) * k_spread) >> (32 - k_mask_bits);
  }
  // The first place from `at`, 2 or more, on at which bytes end that may be a window; else `size`.
  size_t next_end(const unsigned char* bytes, size_t at, size_t size) const {
    const uint32_t* masks = masks_.data();
    const auto is_end = [masks](uint64_t text) {
      const auto four = static_cast<uint32_t>(text);
      return (masks[mask_slot(four)] >> (four & 31)) & 1;
    };
    const auto load = [&](size_t from, size_t count) {
      uint64_t text = 0;
      std::memcpy(&text, bytes + from, count);
      return text | uint64_t{k_any_case} << 32 | k_any_case;
    };
    if (at == 2 && at < size) {
      if (masks[mask_slot(static_cast<uint32_t>(load(0, 3)) << 8)]) return at;
      ++at;
    }
    for (; at + 5 <= size; at += 4) {  // eight bytes hold what ends at four places
      const uint64_t text = load(at - 3, 8);
      if (is_end(text)) return at;
      if (is_end(text >> 8)) return at + 1;
      if (is_end(text >> 16)) return at + 2;
      if (is_end(text >> 24)) return at + 3;
    }
    while (at < size && !is_end(load(at - 3, 4))) ++at;
    return at;
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
  void set_bits(std::string_view window);
  bool equal(std::string_view text, size_t begin, std::string_view literal) const;

  std::vector<std::string_view> literals_;
  unsigned char fold_[256];
  std::vector<uint32_t> masks_;  // all ones for a window of three bytes
  bool any_three_ = false;
  std::vector<uint32_t> first_;
  std::vector<Entry> entries_;  // [0] is no entry
};

}  // namespace cufit::explain
