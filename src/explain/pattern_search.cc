// SPDX-License-Identifier: Apache-2.0
#include "explain/pattern_search.h"

#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/format.h"
#include "explain/window.h"

namespace cufit::explain {
namespace {

constexpr uint32_t k_windows_per_pattern = 400;
constexpr size_t k_shown_bytes = 240;
constexpr size_t k_column_step = 1024;  // how far into an overlong line one window serves

// A pattern of ASCII alone is matched byte by byte: its program is a fraction of the size that
// UTF-8 classes take, and most of the time goes into compiling.
re2::RE2::Options options(bool ascii) {
  re2::RE2::Options out(re2::RE2::Quiet);
  out.set_case_sensitive(false);
  out.set_max_mem(2 << 20);
  if (ascii) out.set_encoding(re2::RE2::Options::EncodingLatin1);
  return out;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

// One pattern, compiled when a text first holds all its words.
class Pattern {
 public:
  // Where the match begins in the window.
  std::optional<size_t> match(const knowledge::PatternRow& row, const Window& window) {
    if (!row.plain.empty()) {
      const size_t at = window.find_plain(row.plain);
      return at == std::string::npos ? std::nullopt : std::optional<size_t>(at);
    }
    if (windows_ >= k_windows_per_pattern || !window.holds(row.also)) return std::nullopt;
    ++windows_;
    if (!re_) {
      static const re2::RE2::Options utf8 = options(false), ascii = options(true);
      re_ =
          std::make_unique<re2::RE2>("(?m)" + std::string(row.re), is_ascii(row.re) ? ascii : utf8);
    }
    const re2::StringPiece text(window.text());
    re2::StringPiece whole;
    // The first search only answers yes or no, which is much faster; mostly the answer is no.
    if (!re_->ok() || !re_->Match(text, 0, text.size(), re2::RE2::UNANCHORED, nullptr, 0) ||
        !re_->Match(text, 0, text.size(), re2::RE2::UNANCHORED, &whole, 1))
      return std::nullopt;
    return static_cast<size_t>(whole.data() - text.data());
  }

  size_t last_line = SIZE_MAX;  // index of the last line with a match: one match per line

 private:
  std::unique_ptr<re2::RE2> re_;
  uint32_t windows_ = 0;
};

}  // namespace

std::string shortened(std::string_view line, size_t at) {
  auto is_middle = [&](size_t i) {
    return i < line.size() && (static_cast<unsigned char>(line[i]) & 0xC0) == 0x80;
  };
  if (line.size() <= k_shown_bytes) return std::string(trim(line));
  size_t begin = at > k_shown_bytes / 4 ? at - k_shown_bytes / 4 : 0;
  size_t end = std::min(line.size(), begin + k_shown_bytes);
  while (is_middle(begin)) ++begin;
  while (is_middle(end)) --end;
  return (begin ? "..." : "") + std::string(trim(line.substr(begin, end - begin))) +
         (end < line.size() ? "..." : "");
}

PatternSearch::PatternSearch(const knowledge::Knowledge& knowledge) : words_(collect(knowledge)) {}

std::vector<std::string_view> PatternSearch::collect(const knowledge::Knowledge& knowledge) {
  std::vector<std::string_view> words;
  std::unordered_map<std::string_view, uint32_t> word_numbers, pattern_numbers;
  auto add = [&](std::span<const knowledge::PatternRow> rows) {
    const size_t begin = order_.size();
    for (const knowledge::PatternRow& row : rows) {
      const auto next = static_cast<uint32_t>(patterns_.size());
      auto [number, is_new] = pattern_numbers.try_emplace(row.re, next);
      order_.push_back(number->second);
      if (!is_new) continue;
      auto [word, is_new_word] =
          word_numbers.try_emplace(row.literal, static_cast<uint32_t>(words.size()));
      if (is_new_word) {
        words.push_back(row.literal);
        patterns_of_word_.emplace_back();
      }
      patterns_of_word_[word->second].push_back(next);
      patterns_.push_back(&row);
    }
    return begin;
  };
  for (const knowledge::ClueRow& clue : knowledge.clues) clue_begin_.push_back(add(clue.patterns));
  for (const knowledge::FindingTexts& finding : knowledge.findings) {
    std::vector<size_t>& begins = sign_begin_.emplace_back();
    for (const knowledge::SignRow& sign : finding.signs) begins.push_back(add(sign.any));
  }
  return words;
}

std::vector<std::vector<Match>> PatternSearch::find(
    std::span<const formats::TextLine> lines) const {
  std::vector<Pattern> patterns(patterns_.size());
  std::vector<std::vector<Match>> out(patterns_.size());
  // All lines in one piece, so that a literal of several words is found across a line break.
  std::string all;
  std::vector<size_t> begins;
  std::vector<bool> repeated;  // a line that stands there a third time says nothing new
  std::unordered_map<std::string_view, int> seen;
  for (const formats::TextLine& line : lines) {
    begins.push_back(all.size());
    all += line.text;
    all += '\n';
    repeated.push_back(++seen[line.text] > 2);
  }
  size_t line = 0;
  Window window;
  size_t window_of = SIZE_MAX, window_at = 0;
  words_.each(all, [&](uint32_t word, size_t at) -> size_t {
    while (line + 1 < begins.size() && begins[line + 1] <= at) ++line;
    if (repeated[line]) return line + 1 < begins.size() ? begins[line + 1] : all.size();
    const size_t column = at - begins[line];
    for (uint32_t number : patterns_of_word_[word]) {
      Pattern& pattern = patterns[number];
      if (out[number].size() >= k_matches_per_pattern || pattern.last_line == line) continue;
      if (window_of != line || column > window_at + k_column_step) {
        window = Window(lines, line, column);
        window_of = line, window_at = column;
      }
      const std::optional<size_t> found = pattern.match(*patterns_[number], window);
      if (!found) continue;
      const auto [index, begin] = window.line_at(*found);
      // The same match seen from the next line.
      if (pattern.last_line != SIZE_MAX && index <= pattern.last_line) continue;
      pattern.last_line = index;
      out[number].push_back({lines[index].number, shortened(lines[index].text, *found - begin)});
    }
    return 0;
  });
  return out;
}

}  // namespace cufit::explain
