// SPDX-License-Identifier: Apache-2.0
// Where the files of quota domains of this user lie, and the names by which a launch knows its own files again.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "host/files/host.h"

namespace cufit::host {

// A folder that only this user may use, made where it is missing; the one above it has to be there.
// Error{no_permission}: it is another user's, or others may write to it. Error{io}.
Result<void> own_folder(const std::string& path);

// $XDG_RUNTIME_DIR/cufit where that is this user's, /dev/shm/cufit-UID, /tmp/cufit-UID: what there may be, best first.
std::vector<std::string> quota_folders(const Host& variables);
// The first that will do, made where it is missing. Error: none, with each why.
Result<std::string> quota_folder(const Host& variables);

// "PID-START-NAMESPACE" of this process: nobody else has it as long as the machine runs, in no container either.
std::string this_launch();
// gone: its process ended. elsewhere: it is of another pid namespace, whose processes cannot be looked up.
enum class LaunchState { lives, gone, elsewhere, no_launch };
LaunchState launch_state(const std::string& launch);

}  // namespace cufit::host
