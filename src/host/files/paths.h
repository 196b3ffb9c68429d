// SPDX-License-Identifier: Apache-2.0
// Paths and folders of this machine, as commands need them beside host.h: what is typed is relative
// to the working folder, and what is written goes into folders that may have to be made.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cufit::host {

std::string working_folder();  // "." where it has no name
// From the root, with "." and ".." worked out by name; as it is where there is no working folder.
std::string absolute_path(const std::string& path);
// Of `--env`, without a slash at the end: a report is read elsewhere than where cufit was started.
std::vector<std::string> absolute_folders(const std::vector<std::string>& paths);
// From `folder` to `path`, links followed; empty where there is no way.
std::string relative_path(const std::string& path, const std::string& folder);
// From the root, links followed as far as there is a path; empty where that cannot be told.
std::string resolved_path(const std::string& path);

bool path_exists(const std::string& path);   // links followed
bool entry_exists(const std::string& path);  // also a link that leads nowhere
bool is_folder(const std::string& path);
bool is_link(const std::string& path);
bool is_file(const std::string& path);                        // a regular one
bool same_entry(const std::string& a, const std::string& b);  // of two paths that exist

// A path from `folder` upwards to the root that holds an entry `name`; empty = none. A link that
// leads nowhere counts: it was meant to be read, and what reads it says what is wrong.
std::string find_upwards(const std::string& folder, const std::string& name);

// With those above it; an error names the path and says why.
Result<void> create_folders(const std::string& path);
Result<void> copy_file(const std::string& from, const std::string& to);
Result<void> rename_file(const std::string& from, const std::string& to);  // within a folder; replaces
Result<void> let_run(const std::string& path);  // chmod a+x

}  // namespace cufit::host
