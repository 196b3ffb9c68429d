// SPDX-License-Identifier: Apache-2.0
// Man page and shell completions, made from the command table: a new row documents itself. Used by
// `cufit self`. Descriptions are English: man pages and completions have one language per file.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "commands/command.h"

namespace cufit::commands {

// man.cc: roff, section 1
std::string man_page(std::span<const Command> commands, const knowledge::Knowledge& knowledge);
// completions.cc; shell: "bash", "zsh" or "fish"; empty text for any other.
std::string completions(std::string_view shell, std::span<const Command> commands,
                        const knowledge::Knowledge& knowledge);

}  // namespace cufit::commands
