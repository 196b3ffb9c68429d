// SPDX-License-Identifier: Apache-2.0
// The guard out of this program into a file that a loader can map: named by its content, written beside and renamed,
// compared byte by byte before each use.
#pragma once

#include <string>

#include "base/result.h"
#include "host/files/host.h"

namespace cufit::host {

// In $XDG_CACHE_HOME/cufit/guard or ~/.cache/cufit/guard, else in `quota_folder`: the first that programs may be loaded from and
// whose path has no blank and no colon, which part the names of LD_PRELOAD. Error{io}: none of them will do, with each why.
Result<std::string> write_guard_library(const Host& variables, const std::string& quota_folder);

}  // namespace cufit::host
