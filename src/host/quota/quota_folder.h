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
// The same of one that is there: nothing is made.
Result<void> judge_own_folder(const std::string& path);

// $CUFIT_RUN_DIR, /dev/shm/cufit-UID, /tmp/cufit-UID, $XDG_RUNTIME_DIR/cufit: what there may be, best first. A session's
// folder is last: ssh and cron have none, and it goes at logout while jobs live on.
std::vector<std::string> quota_folders(const Host& variables);
// CUFIT_RUN_DIR where it is set, and no other; else the first that will do, so that all launches of a user meet in one.
// Made where it is missing. Error: none, with each why; one of these names belongs to another user.
Result<std::string> quota_folder(const Host& variables);

// "PID-START-NAMESPACE" of this process: nobody else has it as long as the machine runs, in no container either.
std::string this_launch();
// gone: its process ended. elsewhere: it is of another pid namespace, whose processes cannot be looked up.
enum class LaunchState { lives, gone, elsewhere, no_launch };
LaunchState launch_state(const std::string& launch);

}  // namespace cufit::host
