// SPDX-License-Identifier: Apache-2.0
// Letters and digits of ASCII, whatever the locale says.
#pragma once

namespace cufit {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace cufit
