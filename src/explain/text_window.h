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

#include "formats/prose/text_lines.h"

namespace cufit::explain {

class Window {
 public:
  Window() = default;
  // The line at `index`, overlong ones around the byte `column`, and two lines before and after it.
  Window(std::span<const formats::TextLine> lines, size_t index, size_t column);

  const std::string& text() const { return text_; }  // in lower case
  // Whether the literals of a PatternRow::shape stand here in their order and near enough to each
  // other. False: the pattern matches nowhere in text().
  bool fits(std::string_view shape) const;
  // Place of a text in lower case in text(), where a blank is any white space and "\\b" at an end
  // is a word's edge (PatternRow::plain); npos = not there.
  size_t find_plain(std::string_view plain) const;
  // The line at `index` alone, within text().
  std::string_view middle() const { return std::string_view(text_).substr(middle_, middle_size_); }
  // Index of the line that holds the byte, and where that line begins.
  std::pair<size_t, size_t> line_at(size_t offset) const;

 private:
  // Perhaps in flat_: all runs of three bytes of it are.
  bool may_hold(std::string_view text) const;
  // Where a text of a shape begins and ends in flat_, at `from` or after; npos = nowhere.
  struct Place {
    size_t begin, end;
  };
  Place find(std::string_view text, size_t from) const;
  size_t match_at(size_t at, std::string_view text) const;  // its end; npos = it does not
  bool has_run(const char* bytes) const;                    // three bytes
  // Whether each part of a shape may be here, wherever.
  bool may_fit(std::string_view shape) const;

  std::string text_;
  std::vector<std::pair<size_t, size_t>> begins_;  // offset in text_, index of the line
  size_t middle_ = 0, middle_size_ = 0;
  std::vector<uint32_t> flat_from_;  // offset in text_ of each byte of flat_
  std::string flat_;                 // lower case, each run of white space one blank
  std::array<uint64_t, 64> runs_{};  // a bit for every run of three bytes of flat_
};

}  // namespace cufit::explain
