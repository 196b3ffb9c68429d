// SPDX-License-Identifier: Apache-2.0
// Characters that a terminal obeys, or that turn a reader's eye, in place of being shown. Whatever
// prints a text from outside looks for these; how it shows them is its own matter.
#pragma once

#include <cstdint>

namespace cufit {

// Delete and C1, which begin or end sequences as escape does. (Below U+0020 each printer decides.)
constexpr bool is_late_control(uint32_t code) { return code >= 0x7f && code < 0xa0; }

// Marks of the reading direction, other ends of a line and the mark of the byte order: U+061C,
// U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069, U+FEFF.
constexpr bool is_direction_mark(uint32_t code) {
  return code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

}  // namespace cufit
