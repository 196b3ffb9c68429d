// SPDX-License-Identifier: Apache-2.0
// Processes of this machine and who started whom, from /proc. Used by record_run and traced_run.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace cufit::host {

// `first` and all below it that this user can see, in the order of their numbers.
std::vector<pid_t> processes_from(pid_t first);

// The names in a folder, sorted, "." and ".." among them; none where it cannot be listed.
std::vector<std::string> names_in(const std::string& folder);
// The first 64 KiB of a file; empty where it cannot be read.
std::string read_small(const std::string& path);

}  // namespace cufit::host
