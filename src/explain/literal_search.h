// SPDX-License-Identifier: Apache-2.0
// Finds many short literals in a text at once, whatever the ASCII case, at memory speed: the window
// of three bytes at each place is looked up in a bit table, and only where that says "perhaps" are
// the literals compared. Ready after one pass over the literals: compiling the thousand patterns
// behind them, or an automaton for them, would cost more than reading a usual paste. White space
// of any kind counts as a blank, so that a literal of several words is found across a line break.
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

  size_t size() const { return literals_.size(); }

  // Calls on_hit(literal, begin) for every occurrence, in order of the place. on_hit returns where
  // to go on: anything up to the place itself to see every hit, or a later place to skip text.
  template <class OnHit>
  void each(std::string_view text, OnHit&& on_hit) const {
    if (text.size() < 3) return;
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    uint32_t window = 0;
    for (size_t i = 0; i < 2; ++i) window = (window << 8) | fold_[bytes[i]];
    for (size_t i = 2; i < text.size(); ++i) {
      window = ((window << 8) | fold_[bytes[i]]) & 0xFFFFFF;
      const uint32_t slot = hash(window);
      if (((bits_[slot >> 6] >> (slot & 63)) & 1) == 0) continue;
      size_t resume = 0;
      for (uint32_t e = first_[slot & k_bucket_mask]; e != 0; e = entries_[e].next) {
        const Entry& entry = entries_[e];
        if (entry.window != window || size_t{entry.offset} + 2 > i) continue;
        const size_t begin = i - 2 - entry.offset;
        if (!equal(text, begin, literals_[entry.literal])) continue;
        const size_t wanted = on_hit(entry.literal, begin);
        if (wanted > resume) resume = wanted;
      }
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
    uint8_t offset;  // of the window in the literal
  };
  static constexpr uint32_t k_slots = 1u << 17, k_bucket_mask = (1u << 12) - 1;
  static uint32_t hash(uint32_t window) { return (window * 0x9E3779B1u) >> 15; }
  bool equal(std::string_view text, size_t begin, std::string_view literal) const;

  std::vector<std::string_view> literals_;
  unsigned char fold_[256];
  std::vector<uint64_t> bits_;
  std::vector<uint32_t> first_;
  std::vector<Entry> entries_;  // [0] is no entry
};

}  // namespace cufit::explain
