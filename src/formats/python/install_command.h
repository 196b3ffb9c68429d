// SPDX-License-Identifier: Apache-2.0
// What `pip install`, `uv pip install`, `uv add`, `poetry add` and `pdm add` on a line ask for.
// Part of parse_package_mentions().
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/prose/package_mentions.h"

namespace cufit::formats {

// `from_folder` is set when one names a folder, a file or a repository.
std::vector<InstallCommand> parse_install_commands(std::string_view line, uint64_t number,
                                                   bool& from_folder);

// "2.5.8" of "2.5.8`": a version that a command may name with "==". Without a local part, which the
// index does not know, and none for a pattern ("2.5.*").
std::string_view pinned_version(std::string_view text);

}  // namespace cufit::formats
