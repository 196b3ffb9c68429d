// SPDX-License-Identifier: Apache-2.0
// Which lines of a text hold certain words, in one pass, so that a regular expression is compiled only where one of the
// words that its matches have is there, and asked of those lines alone. Used for patterns that clues do not choose.
#pragma once

#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace cufit::explain {

class WordLines {
 public:
  // `words`: lists of words of 3 to 255 bytes in lower case, parted by `|`; the text may have them in any case. A blank
  // is one white space.
  WordLines(std::span<const std::string_view> lines, std::span<const std::string_view> words);

  // Indices of the lines that hold a word of the list, rising. Every line for an empty list, and where the text has one of
  // the two letters that RE2 takes for an ASCII one in another case.
  std::vector<size_t> of(std::string_view words) const;

 private:
  size_t lines_;
  bool odd_case_ = false;
  std::map<std::string_view, std::vector<size_t>> found_;
};

}  // namespace cufit::explain
