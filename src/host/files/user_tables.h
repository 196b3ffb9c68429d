// SPDX-License-Identifier: Apache-2.0
// The table file that `cufit self update-tables` puts into the user's data folder, and that every
// start reads in place of built-in tables: $XDG_DATA_HOME/cufit/tables/tables.toml, else below
// ~/.local/share. It decides what cufit says, so a file that somebody else could write is not read.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "host/files/host.h"

namespace cufit::host {

// Empty = this user has no data folder (neither variable is set).
std::string user_tables_path(const Host& host);

// nullopt = none is there: one system call. Error{no_permission}: it, or its folder, is another
// user's or may be written by others; Error{malformed}: larger than `most_bytes` or no file.
Result<std::optional<std::string>> read_user_tables(const std::string& path, size_t most_bytes);

// With its folder, which only the user may enter; what was there stays where this fails.
Result<void> write_user_tables(const std::string& path, std::string_view bytes);
// Whether one was there.
Result<bool> remove_user_tables(const std::string& path);

}  // namespace cufit::host
