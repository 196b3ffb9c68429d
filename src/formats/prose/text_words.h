// SPDX-License-Identifier: Apache-2.0
// Scanning words of a line by hand. The readers of pasted texts try dozens of forms on each line;
// as regular expressions those would cost more to compile than the whole text costs to read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ascii.h"

namespace cufit::formats {

inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
inline bool is_name_char(char c) { return is_digit(c) || is_letter(c) || c == '_'; }

// Separated by blanks and tabs; none is empty. At most `limit` of them.
std::vector<std::string_view> words_of(std::string_view line, size_t limit = 256);

// Where `word` (lower case) stands in `text`, without regard to case and, with `whole`, not as a
// part of a longer name. npos = nowhere.
size_t find_word(std::string_view text, std::string_view word, size_t from = 0, bool whole = true);
bool has_word(std::string_view text, std::string_view word);
bool starts_with_word(std::string_view text, std::string_view word);  // case is ignored
bool equal_words(std::string_view a, std::string_view b);             // case is ignored

// "2.7.0.dev20250310+cu124" at the start of `text`: begins with a digit, letters allowed, without
// the sentence's full stop. Empty = none. Longer than 64 characters is none.
std::string_view python_version_at(std::string_view text);
// "535.183.01" at the start of `text`: digits and inner dots. Empty = none.
std::string_view dotted_number_at(std::string_view text);
// A version has at least one dot between digits: "2.3", not "2".
bool has_inner_dot(std::string_view version);

// Skips blanks and the punctuation that stands between a name and its value: ":", "=", "(", quotes,
// "version", "is", "v".
std::string_view value_after(std::string_view text);

// "498MiB", "24576 MiB", "12 GiB" at the start of `text`, in MiB.
std::optional<uint64_t> mib_at(std::string_view text);

}  // namespace cufit::formats
