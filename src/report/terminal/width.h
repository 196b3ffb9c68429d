// SPDX-License-Identifier: Apache-2.0
// Columns that a text takes on a terminal (CJK counts two) and wrapping by columns.
//
// Characters of "ambiguous" East Asian width count one; our own marks avoid them, so that columns
// line up in a Chinese terminal as well. A word that is wider than the line stays whole: a path or
// a command that is cut in two cannot be copied.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cufit::report {

int columns(std::string_view utf8);
// Wraps at spaces and between wide characters, not before closing punctuation or after opening
// punctuation; never breaks inside a `back-quoted` span. A \n in the text ends a line. At least one
// line.
std::vector<std::string> wrap(std::string_view utf8, int width);
std::string pad(std::string_view utf8, int width);
// Makes text from outside safe for a terminal: control and bidirectional characters become \x1b or
// \u202e, bytes that are not UTF-8 become U+FFFD. Keeps \n; tabs become a space.
std::string printable(std::string_view utf8);

// One code point at text[at] and its length in bytes; 0xFFFD and length 1 where the bytes are not
// UTF-8.
struct CodePoint {
  char32_t value = 0;
  size_t length = 1;
};
CodePoint decode(std::string_view utf8, size_t at);

}  // namespace cufit::report
