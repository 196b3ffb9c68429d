// SPDX-License-Identifier: Apache-2.0
#include "explain/word_lines.h"

#include <algorithm>
#include <string>

#include "base/format.h"
#include "explain/literal_search.h"

namespace cufit::explain {

WordLines::WordLines(std::span<const std::string_view> lines,
                     std::span<const std::string_view> words)
    : lines_(lines.size()) {
  for (std::string_view list : words) {
    for (std::string_view word : split(list, '|')) {
      if (!word.empty()) found_.try_emplace(word);
    }
  }
  if (found_.empty()) return;
  std::vector<std::string_view> literals;
  std::vector<std::vector<size_t>*> places;
  for (auto& [word, of_word] : found_) {
    literals.push_back(word);
    places.push_back(&of_word);
  }
  std::string all;
  std::vector<size_t> begins;
  for (std::string_view line : lines) {
    begins.push_back(all.size());
    all += line;
    all += '\n';
  }
  odd_case_ = contains(all, "\xE2\x84\xAA") || contains(all, "\xC5\xBF");  // Kelvin, long s
  size_t line = 0;
  LiteralSearch(literals).each(all, [&](uint32_t word, size_t at) -> size_t {
    while (line + 1 < begins.size() && begins[line + 1] <= at) ++line;
    std::vector<size_t>& of_word = *places[word];
    if (of_word.empty() || of_word.back() != line) of_word.push_back(line);
    return 0;
  });
}

std::vector<size_t> WordLines::of(std::string_view words) const {
  std::vector<size_t> out;
  if (words.empty() || odd_case_) {
    for (size_t i = 0; i < lines_; ++i) out.push_back(i);
    return out;
  }
  for (std::string_view word : split(words, '|')) {
    const std::vector<size_t>& more = found_.at(word);
    out.insert(out.end(), more.begin(), more.end());
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace cufit::explain
