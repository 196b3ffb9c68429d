// SPDX-License-Identifier: Apache-2.0
// Result files appear whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace cufit::commands {

// Writes beside `path` and renames. What is there is replaced and its mode kept, unless it may not
// be written; links are followed; a pipe or device is written directly.
Result<void> write_whole_file(const std::string& path, std::string_view bytes);

}  // namespace cufit::commands
