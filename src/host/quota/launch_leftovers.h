// SPDX-License-Identifier: Apache-2.0
// What launches that are over left in quota_folder() beside their domains.
#pragma once

#include <string>

namespace cufit::host {

// Of FOLDER, one folder for each launch: empty ones go, the newest that hold something stay, eight at most and no more than
// 16 MiB.
void remove_old_recordings(const std::string& folder);
// An MPS daemon that a launch started and did not end (it was killed): asked to quit, its folder removed.
void remove_old_mps(const std::string& folder);

}  // namespace cufit::host
