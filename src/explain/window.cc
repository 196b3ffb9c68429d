// SPDX-License-Identifier: Apache-2.0
#include "explain/window.h"

#include <algorithm>

namespace cufit::explain {
namespace {

constexpr size_t k_lines_around = 2;
constexpr size_t k_half = 2048;  // bytes of an overlong line on each side of the word

bool follows(const formats::TextLine& a, const formats::TextLine& b) {
  return b.number <= a.number + 1;
}

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool holds_one(const std::string& flat, std::string_view alternatives) {
  for (size_t begin = 0; begin <= alternatives.size();) {
    const size_t end = std::min(alternatives.find('|', begin), alternatives.size());
    if (flat.find(alternatives.substr(begin, end - begin)) != std::string::npos) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

Window::Window(std::span<const formats::TextLine> lines, size_t index, size_t column) {
  size_t first = index, last = index;
  while (first > 0 && index - first < k_lines_around && follows(lines[first - 1], lines[first]))
    --first;
  while (last + 1 < lines.size() && last - index < k_lines_around &&
         follows(lines[last], lines[last + 1]))
    ++last;
  for (size_t i = first; i <= last; ++i) {
    if (i > first) text_ += '\n';
    begins_.push_back({text_.size(), i});
    const std::string_view line = lines[i].text;
    if (i == index) {
      text_ += line.substr(column > k_half ? column - k_half : 0, 2 * k_half);
    } else if (i < index) {
      text_ += line.substr(line.size() - std::min(line.size(), k_half));
    } else {
      text_ += line.substr(0, k_half);
    }
  }
  flat_.reserve(text_.size());
  flat_from_.reserve(text_.size());
  for (size_t i = 0; i < text_.size(); ++i) {
    char c = text_[i];
    if (is_blank(c)) {
      if (!flat_.empty() && flat_.back() == ' ') continue;
      c = ' ';
    } else if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    }
    flat_ += c;
    flat_from_.push_back(static_cast<uint32_t>(i));
  }
}

bool Window::holds(std::string_view words) const {
  while (!words.empty()) {
    const size_t end = std::min(words.find('\n'), words.size());
    if (!holds_one(flat_, words.substr(0, end))) return false;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return true;
}

size_t Window::find_plain(std::string_view plain) const {
  const bool edge_before = plain.substr(0, 1) == "\b";
  if (edge_before) plain.remove_prefix(1);
  const bool edge_after = !plain.empty() && plain.back() == '\b';
  if (edge_after) plain.remove_suffix(1);
  if (plain.empty()) return std::string::npos;
  for (size_t at = flat_.find(plain); at != std::string::npos; at = flat_.find(plain, at + 1)) {
    const size_t end = at + plain.size();
    const bool word_before = at > 0 && is_word(flat_[at - 1]);
    const bool word_after = end < flat_.size() && is_word(flat_[end]);
    if (edge_before && word_before == is_word(plain.front())) continue;
    if (edge_after && word_after == is_word(plain.back())) continue;
    return flat_from_[at];
  }
  return std::string::npos;
}

std::pair<size_t, size_t> Window::line_at(size_t offset) const {
  auto after =
      std::upper_bound(begins_.begin(), begins_.end(), std::pair<size_t, size_t>{offset, SIZE_MAX});
  --after;
  return {after->second, after->first};
}

}  // namespace cufit::explain
