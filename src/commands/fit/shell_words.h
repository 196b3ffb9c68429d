// SPDX-License-Identifier: Apache-2.0
// Commands that start a shell: `bash -c '...'`, `bash train.sh`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/files/host.h"

namespace cufit::commands {

// Where the text of `bash -c '...'` stands among the words.
std::optional<size_t> shell_text(const std::vector<std::string>& command);

// Whether the words behind the text come to a program in it.
bool hands_words_on(const std::string& text);

// `bash train.sh x` as `bash -c '...' train.sh x`, which does the same: in the text an option can
// be given another value. Nullopt where the command starts no such script.
std::optional<std::vector<std::string>> script_as_text(const host::Host& files,
                                                       const std::vector<std::string>& command);

}  // namespace cufit::commands
