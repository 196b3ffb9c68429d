// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/printable.h"

#include <cstdint>

#include "base/terminal_marks.h"
#include "base/utf8.h"

namespace cufit::formats {

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    size_t length = utf8_length(text.substr(i));
    if (out.size() + (length == 0 ? 1 : length) > limit) break;
    uint8_t first = static_cast<uint8_t>(text[i]);
    const uint32_t code = length == 0 ? 0 : utf8_code(text.substr(i, length));
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
