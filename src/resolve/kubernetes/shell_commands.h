// SPDX-License-Identifier: Apache-2.0
// The commands of a container: its argument vector, and each command of a script in it
// (`sh -c "..."`). Comments, here-documents, and commands that only fetch or move files (pip, git,
// cd) are left out: a name there starts nothing.
#pragma once

#include <string>
#include <vector>

#include "formats/system/kubernetes_objects.h"

namespace cufit::resolve {

using CommandWords = std::vector<std::string>;

// In the order in which they stand. Quotes are taken off, and what they hold is read like the rest:
// good enough for options and their values. "$(...)" is one word with its blanks.
std::vector<CommandWords> commands_of(const formats::ManifestContainer& container);

}  // namespace cufit::resolve
