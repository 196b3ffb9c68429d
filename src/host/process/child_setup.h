// SPDX-License-Identifier: Apache-2.0
// What a forked child of cufit does first when it goes on to call the driver itself: no inherited
// files, signals or core dumps, the environment of the host that is looked at. Used by
// spawn_worker(); never in a child that becomes the user's program.
#pragma once

#include <sys/types.h>

#include "host/files/host.h"

namespace cufit::host {

// Ends with the parent. Returns the new number of `pipe`: 0, 1 and 2 become /dev/null, since the
// driver prints, and every other file is closed.
int set_up_child(const Host& host, int pipe, pid_t parent);

}  // namespace cufit::host
