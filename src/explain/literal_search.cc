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

}  // namespace

LiteralSearch::LiteralSearch(std::span<const std::string_view> literals)
    : literals_(literals.begin(), literals.end()),
      masks_(1u << k_mask_bits),
      first_(1u << k_bucket_bits),
      entries_(1) {
  for (int c = 0; c < 256; ++c) {
    const bool blank = c == '\n' || c == '\r' || c == '\t' || c == '\v' || c == '\f';
    fold_[c] = static_cast<unsigned char>(blank ? ' ' : c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  entries_.reserve(literals_.size() + 1);
  for (uint32_t i = 0; i < literals_.size(); ++i) add(i, {});
}

LiteralSearch::LiteralSearch(const LiteralSearch& other, const std::vector<bool>& skip,
                             std::string_view sample)
    : LiteralSearch(std::span<const std::string_view>()) {
  literals_ = other.literals_;
  const Counts counts = count_runs(sample);
  for (uint32_t i = 0; i < literals_.size(); ++i) {
    if (!skip[i]) add(i, counts);
  }
}

LiteralSearch::Counts LiteralSearch::count_runs(std::string_view sample) const {
  Counts out(1u << k_run_bits);
  uint32_t window = 0;
  for (char c : sample) {
    window = (window << 8) | fold_[static_cast<unsigned char>(c)];
    ++out[hash(window & k_three, k_run_bits)];
  }
  return out;
}

// The window whose last three bytes start the fewest comparisons: those seldom in the sample, else
// those of letters that are seldom in logs.
size_t LiteralSearch::rarest_window(std::string_view literal, size_t width,
                                    const Counts& counts) const {
  const auto byte = [&](size_t i) { return uint32_t{static_cast<unsigned char>(literal[i])}; };
  size_t best = 0, least = SIZE_MAX;
  for (size_t i = 0; i + width <= literal.size(); ++i) {
    size_t cost = 0;
    for (size_t k = 0; k < width; ++k) cost += k_commonness[byte(i + k)];
    if (!counts.empty()) {
      const size_t end = i + width - 3;
      const uint32_t run = byte(end) << 16 | byte(end + 1) << 8 | byte(end + 2);
      cost += 16 * size_t{counts[hash(run, k_run_bits)]};
    }
    if (cost < least) least = cost, best = i;
  }
  return best;
}

void LiteralSearch::add(uint32_t index, const Counts& counts) {
  const std::string_view literal = literals_[index];
  CUFIT_CHECK(literal.size() >= 3 && literal.size() < 256, "gen-tables makes no other literals");
  const size_t width = literal.size() == 3 ? 3 : 4, offset = rarest_window(literal, width, counts);
  uint32_t window = 0;
  for (size_t k = 0; k < width; ++k)
    window = (window << 8) | fold_[static_cast<unsigned char>(literal[offset + k])];
  set_bits(literal.substr(offset, width));
  any_three_ = any_three_ || width == 3;
  uint32_t& first = first_[hash(window, k_bucket_bits)];
  entries_.push_back(
      {window, index, first, static_cast<uint8_t>(offset), static_cast<uint8_t>(width)});
  first = static_cast<uint32_t>(entries_.size() - 1);
}

// A blank stands for white space of any kind.
void LiteralSearch::set_bits(std::string_view window) {
  const auto set_from = [&](const auto& self, size_t k, uint32_t bytes) -> void {
    if (k == window.size()) {
      const uint32_t four = (k == 4 ? bytes : bytes << 8) | k_any_case;
      masks_[mask_slot(four)] |= k == 4 ? 1u << (four & 31) : ~0u;
      return;
    }
    const bool blank = fold_[static_cast<unsigned char>(window[k])] == ' ';
    for (const char c : blank ? std::string_view(" \t\n\v\f\r") : window.substr(k, 1))
      self(self, k + 1, bytes | uint32_t{static_cast<unsigned char>(c)} << (8 * k));
  };
  set_from(set_from, 0, 0);
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
