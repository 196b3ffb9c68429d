// SPDX-License-Identifier: Apache-2.0
// What the caches below ~/.cache/cufit have in common: folders and files of this user alone.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/files/host.h"

namespace cufit::host {

// $XDG_CACHE_HOME/cufit/NAME, else ~/.cache/cufit/NAME; empty: no variable names a place.
std::string own_cache_folder(const Host& host, std::string_view name);

// False: it cannot be made, is another user's, or others may write to it. In folders of others none is
// made: what root made below a user's HOME would be closed to that user.
bool make_own_folder(const std::string& path);
bool is_own_folder(const std::string& path);

// nullopt: no regular file of this user that nobody else may read or write, no link, or it is longer.
std::optional<std::string> read_own_file(const std::string& path, size_t most_bytes);

// Of the files whose names are the cache's own, with the time of their change, the oldest first.
std::vector<std::pair<int64_t, std::string>> own_cache_files(
    const std::string& folder, const std::function<bool(std::string_view)>& is_own_name);

}  // namespace cufit::host
