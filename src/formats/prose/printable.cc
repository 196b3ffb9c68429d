// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/printable.h"

#include <cstdint>

namespace cufit::formats {

// Unicode 15, table 3-7.
size_t utf8_length(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t first = byte(0);
  if (first < 0x80) return 1;
  size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                  : first >= 0xe0 && first <= 0xef ? 3
                  : first >= 0xf0 && first <= 0xf4 ? 4
                                                   : 0;
  if (length == 0 || length > text.size()) return 0;
  uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;  // no over-long forms
  uint8_t high = first == 0xed   ? 0x9f
                 : first == 0xf4 ? 0x8f
                                 : 0xbf;  // no surrogates, nothing over U+10FFFF
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  }
  return length;
}

namespace {

// What turns the reading direction or ends a line where no reader sees it: U+061C, U+200E, U+200F,
// U+2028 to U+202E, U+2066 to U+2069, U+FEFF.
bool is_direction(std::string_view sequence) {
  if (sequence == "\xd8\x9c" || sequence == "\xef\xbb\xbf") return true;
  if (sequence.size() != 3 || sequence[0] != '\xe2') return false;
  const auto last = static_cast<uint8_t>(sequence[2]);
  if (sequence[1] == '\x80') return last == 0x8e || last == 0x8f || (last >= 0xa8 && last <= 0xae);
  return sequence[1] == '\x81' && last >= 0xa6 && last <= 0xa9;
}

}  // namespace

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    size_t length = utf8_length(text.substr(i));
    if (out.size() + (length == 0 ? 1 : length) > limit) break;
    uint8_t first = static_cast<uint8_t>(text[i]);
    bool is_control =
        first < 0x20 || first == 0x7f ||
        (length == 2 && first == 0xc2 && static_cast<uint8_t>(text[i + 1]) < 0xa0);  // C1
    if (first == '\t') {
      out += ' ';
    } else if (length == 0 || is_control || is_direction(text.substr(i, length))) {
      out += '?';
    } else {
      out += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  return out;
}

}  // namespace cufit::formats
