// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace cufit {

// A path or value as one word of a POSIX shell: quoted where it has to be, and never an option.
// It holds no backtick, between which reports set their commands: that is written by its number.
std::string shell_word(std::string_view text);

// A word of a command as its user wrote it, which may be an option: quoted where it has to be.
std::string shell_argument(std::string_view text);

}  // namespace cufit
