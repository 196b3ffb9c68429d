// SPDX-License-Identifier: Apache-2.0
#include "explain/literal_search.h"

#include <array>

#include "base/result.h"

namespace cufit::explain {
namespace {

// How common a byte is in logs, roughly: the window with the least sum starts the fewest false
// comparisons. Blanks, vowels and digits are everywhere.
constexpr std::array<uint8_t, 256> commonness() {
  std::array<uint8_t, 256> out{};
  for (uint8_t& value : out) value = 1;
  for (char c : std::string_view("ldcumpg.:/_-=\"'")) out[static_cast<unsigned char>(c)] = 2;
  for (char c : std::string_view(" eaiortns0123456789")) out[static_cast<unsigned char>(c)] = 3;
  return out;
}
constexpr std::array<uint8_t, 256> k_commonness = commonness();

size_t rarest_window(std::string_view literal, size_t width) {
  size_t best = 0;
  int least = 1000;
  for (size_t i = 0; i + width <= literal.size(); ++i) {
    int sum = 0;
    for (size_t k = 0; k < width; ++k)
      sum += k_commonness[static_cast<unsigned char>(literal[i + k])];
    if (sum < least) least = sum, best = i;
  }
  return best;
}

}  // namespace

LiteralSearch::LiteralSearch(std::span<const std::string_view> literals)
    : literals_(literals.begin(), literals.end()),
      bits_((1u << k_slot_bits) / 64),
      first_(k_bucket_mask + 1),
      entries_(1) {
  for (int c = 0; c < 256; ++c) {
    const bool blank = c == '\n' || c == '\r' || c == '\t' || c == '\v' || c == '\f';
    fold_[c] = static_cast<unsigned char>(blank ? ' ' : c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  entries_.reserve(literals_.size() + 1);
  for (uint32_t i = 0; i < literals_.size(); ++i) add(i);
}

LiteralSearch::LiteralSearch(const LiteralSearch& other, const std::vector<bool>& skip)
    : LiteralSearch(std::span<const std::string_view>()) {
  literals_ = other.literals_;
  for (uint32_t i = 0; i < literals_.size(); ++i) {
    if (!skip[i]) add(i);
  }
}

void LiteralSearch::add(uint32_t index) {
  const std::string_view literal = literals_[index];
  CUFIT_CHECK(literal.size() >= 3 && literal.size() < 256, "gen-tables makes no other literals");
  const size_t width = literal.size() == 3 ? 3 : 4, offset = rarest_window(literal, width);
  uint32_t window = 0;
  for (size_t k = 0; k < width; ++k)
    window = (window << 8) | fold_[static_cast<unsigned char>(literal[offset + k])];
  const uint32_t slot = hash(window) ^ (width == 3 ? k_other_half : 0);
  bits_[slot >> 6] |= uint64_t{1} << (slot & 63);
  uint32_t& first = first_[slot & k_bucket_mask];
  entries_.push_back(
      {window, index, first, static_cast<uint8_t>(offset), static_cast<uint8_t>(width)});
  first = static_cast<uint32_t>(entries_.size() - 1);
}

bool LiteralSearch::equal(std::string_view text, size_t begin, std::string_view literal) const {
  if (begin + literal.size() > text.size()) return false;
  for (size_t i = 0; i < literal.size(); ++i) {
    if (fold_[static_cast<unsigned char>(text[begin + i])] !=
        static_cast<unsigned char>(literal[i]))
      return false;
  }
  return true;
}

}  // namespace cufit::explain
