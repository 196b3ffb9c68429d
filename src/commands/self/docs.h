// SPDX-License-Identifier: Apache-2.0
// Man page and shell completions, made from the command table: a new row documents itself. Used by
// `cufit self`. Descriptions are English: man pages and completions have one language per file.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "commands/command.h"

namespace cufit::commands {

std::string man_page(std::span<const Command> commands);  // man.cc: roff, section 1
// shell: "bash", "zsh" or "fish"; empty text for any other.   completions.cc
std::string completions(std::string_view shell, std::span<const Command> commands);

}  // namespace cufit::commands
