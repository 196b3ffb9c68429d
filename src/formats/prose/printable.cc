// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/printable.h"

#include "base/terminal_marks.h"

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

// The number of a sequence of two or three bytes; 0 for others, none of which is a mark.
uint32_t code_of(std::string_view sequence) {
  uint32_t code = 0;
  if (sequence.size() == 2) code = static_cast<uint8_t>(sequence[0]) & 0x1f;
  if (sequence.size() == 3) code = static_cast<uint8_t>(sequence[0]) & 0xf;
  if (sequence.size() != 2 && sequence.size() != 3) return 0;
  for (const char c : sequence.substr(1)) code = code << 6 | (static_cast<uint8_t>(c) & 0x3f);
  return code;
}

}  // namespace

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    size_t length = utf8_length(text.substr(i));
    if (out.size() + (length == 0 ? 1 : length) > limit) break;
    uint8_t first = static_cast<uint8_t>(text[i]);
    const uint32_t code = code_of(text.substr(i, length));
    const bool is_control = first < 0x20 || first == 0x7f || is_late_control(code);
    if (first == '\t') {
      out += ' ';
    } else if (length == 0 || is_control || is_direction_mark(code)) {
      out += '?';
    } else {
      out += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  return out;
}

}  // namespace cufit::formats
