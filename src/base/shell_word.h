// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace cufit {

// A path or value as one word of a POSIX shell: quoted where it has to be, and never an option.
// Backticks, between which reports set their commands, controls that a terminal obeys and bytes that are no UTF-8 are written
// by their numbers, "$(printf '\033')": what is printed of the word is all of it.
std::string shell_word(std::string_view text);

// A word of a command as its user wrote it, which may be an option: quoted where it has to be.
std::string shell_argument(std::string_view text);

}  // namespace cufit
