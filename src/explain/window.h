// SPDX-License-Identifier: Apache-2.0
// Some lines around a word in one piece of memory, for patterns that a line break may interrupt,
// and the searches that need no regular expression.
#pragma once

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
  // All of `words`, one per line; "a|b" is one of them (PatternRow::also).
  bool holds(std::string_view words) const;
  // Place of a text in lower case in text(), where a blank is any white space and "\\b" at an end
  // is a word's edge (PatternRow::plain); npos = not there.
  size_t find_plain(std::string_view plain) const;
  // Index of the line that holds the byte, and where that line begins.
  std::pair<size_t, size_t> line_at(size_t offset) const;

 private:
  std::string text_;
  std::string flat_;                               // lower case, each run of white space one blank
  std::vector<uint32_t> flat_from_;                // offset in text_ of each byte of flat_
  std::vector<std::pair<size_t, size_t>> begins_;  // offset in text_, index of the line
};

}  // namespace cufit::explain
