// SPDX-License-Identifier: Apache-2.0
// Files that must be whole after a crash or a full disk: written beside, synced, renamed. Results
// that a user names by -o go through commands/write_file, which follows links and writes to pipes.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace cufit::host {

// Error{io} or Error{no_permission} names the file; what was there before is untouched then.
Result<void> write_synced(const std::string& path, std::string_view bytes);

}  // namespace cufit::host
