// SPDX-License-Identifier: Apache-2.0
// What a launch needs out of this program in files: the guard that a loader can map, the script of `--spill`. Each is named by
// its content, written beside and renamed, compared byte by byte before each use.
#pragma once

#include <string>

#include "base/result.h"
#include "host/files/host.h"

namespace cufit::host {

// In $XDG_CACHE_HOME/cufit/guard or ~/.cache/cufit/guard, else in `quota_folder`, else in another that it could have been: the
// first that programs may be loaded from and whose path has no blank and no colon, which part the names of LD_PRELOAD.
// Error{io}: none of them will do, with each why.
Result<std::string> write_guard_library(const Host& variables, const std::string& quota_folder);

// The script of `--spill` as the sitecustomize.py of a folder of its own, in the same places; that folder, for PYTHONPATH.
Result<std::string> write_spill_script(const Host& variables, const std::string& quota_folder);

// Its text, of python/cufit_spill.
const char* spill_sitecustomize();

}  // namespace cufit::host
