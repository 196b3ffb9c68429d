// SPDX-License-Identifier: Apache-2.0
#include "explain/pattern_search.h"

#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "base/format.h"

namespace cufit::explain {
namespace {

constexpr size_t k_lines_around = 2;
constexpr size_t k_window_half = 2048;  // bytes of an overlong line on each side of the word
constexpr uint32_t k_windows_per_pattern = 400;
constexpr size_t k_shown_bytes = 240;

re2::RE2::Options options() {
  re2::RE2::Options out(re2::RE2::Quiet);
  out.set_case_sensitive(false);
  out.set_max_mem(2 << 20);
  return out;
}

// Some lines in one piece of memory, and where each begins.
struct Window {
  std::string text;
  std::vector<std::pair<size_t, size_t>> begins;  // offset in text, index of the line
};

bool follows(const formats::TextLine& a, const formats::TextLine& b) {
  return b.number <= a.number + 1;
}

std::string_view part(std::string_view line, size_t at) {
  const size_t begin = at > k_window_half ? at - k_window_half : 0;
  return line.substr(begin, 2 * k_window_half);
}

Window window_around(std::span<const formats::TextLine> lines, size_t index, size_t at) {
  size_t first = index, last = index;
  while (first > 0 && index - first < k_lines_around && follows(lines[first - 1], lines[first]))
    --first;
  while (last + 1 < lines.size() && last - index < k_lines_around &&
         follows(lines[last], lines[last + 1]))
    ++last;
  Window window;
  for (size_t i = first; i <= last; ++i) {
    if (i > first) window.text += '\n';
    window.begins.push_back({window.text.size(), i});
    const std::string_view line = lines[i].text;
    window.text += i == index  ? part(line, at)
                   : i < index ? line.substr(line.size() - std::min(line.size(), k_window_half))
                               : line.substr(0, k_window_half);
  }
  return window;
}

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
  std::unordered_map<std::string_view, uint32_t> known;
  auto add = [&](std::span<const knowledge::PatternRow> rows) {
    const size_t begin = patterns_.size();
    for (const knowledge::PatternRow& row : rows) {
      auto [place, is_new] = known.try_emplace(row.literal, static_cast<uint32_t>(words.size()));
      if (is_new) {
        words.push_back(row.literal);
        patterns_of_word_.emplace_back();
      }
      patterns_of_word_[place->second].push_back(static_cast<uint32_t>(patterns_.size()));
      patterns_.push_back(row.re);
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
  struct State {
    std::unique_ptr<re2::RE2> re;
    uint32_t windows = 0;
    size_t last_line = SIZE_MAX;  // index: one match per line
  };
  std::vector<State> states(patterns_.size());
  std::vector<std::vector<Match>> out(patterns_.size());
  const re2::RE2::Options opts = options();
  // All lines in one piece, so that a word of several words is found across a line break.
  std::string all;
  std::vector<size_t> begins;
  for (const formats::TextLine& line : lines) {
    begins.push_back(all.size());
    all += line.text;
    all += '\n';
  }
  size_t line = 0;
  Window window;
  size_t window_of = SIZE_MAX, window_at = 0;
  words_.each(all, [&](uint32_t word, size_t at) -> size_t {
    while (line + 1 < begins.size() && begins[line + 1] <= at) ++line;
    for (uint32_t pattern : patterns_of_word_[word]) {
      State& state = states[pattern];
      if (out[pattern].size() >= k_matches_per_pattern || state.last_line == line) continue;
      if (++state.windows > k_windows_per_pattern) continue;
      if (!state.re) {
        state.re = std::make_unique<re2::RE2>("(?m)" + std::string(patterns_[pattern]), opts);
      }
      const size_t column = at - begins[line];
      if (window_of != line || column > window_at + k_window_half / 2) {
        window = window_around(lines, line, column);
        window_of = line, window_at = column;
      }
      re2::StringPiece whole;
      if (!state.re->ok() ||
          !state.re->Match(window.text, 0, window.text.size(), re2::RE2::UNANCHORED, nullptr, 0) ||
          !state.re->Match(window.text, 0, window.text.size(), re2::RE2::UNANCHORED, &whole, 1))
        continue;
      const size_t offset = static_cast<size_t>(whole.data() - window.text.data());
      auto begin = std::upper_bound(window.begins.begin(), window.begins.end(),
                                    std::pair<size_t, size_t>{offset, SIZE_MAX});
      --begin;
      if (!out[pattern].empty() && state.last_line != SIZE_MAX && begin->second <= state.last_line)
        continue;  // the same match seen from the next line
      state.last_line = begin->second;
      out[pattern].push_back({lines[begin->second].number,
                              shortened(lines[begin->second].text, offset - begin->first)});
    }
    return 0;
  });
  return out;
}

}  // namespace cufit::explain
