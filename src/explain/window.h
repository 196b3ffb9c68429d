// SPDX-License-Identifier: Apache-2.0
// Some lines around a word in one piece of memory, for patterns that a line break may interrupt,
// and the searches that need no regular expression.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/text_lines.h"

namespace cufit::explain {

class Window {
 public:
  Window() = default;
  // The line at `index`, overlong ones around the byte `column`, and two lines before and after it.
  Window(std::span<const formats::TextLine> lines, size_t index, size_t column);

  const std::string& text() const { return text_; }
  // Whether the literals of a PatternRow::shape stand here in their order and near enough to each
  // other. False: the pattern matches nowhere in text().
  bool fits(std::string_view shape) const;
  // Whether a text in lower case stands here, where a blank is any white space and "\\b" at an end
  // is a word's edge (PatternRow::plain).
  bool holds_plain(std::string_view plain) const;

  static constexpr size_t k_lines_around = 2;

 private:
  // Perhaps in flat_: all runs of three bytes of it are.
  bool may_hold(std::string_view text) const;

  std::string text_;
  std::string flat_;                 // lower case, each run of white space one blank
  std::array<uint64_t, 64> runs_{};  // a bit for every run of three bytes of flat_
};

}  // namespace cufit::explain
