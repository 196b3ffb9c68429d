// SPDX-License-Identifier: Apache-2.0
// Who a process on a GPU belongs to: user, command, container, pod, Slurm job, systemd unit, quota domain, environment. From
// /proc alone; needs no root, and tells with it what only root may read (the variables of others' processes).
#pragma once

#include <cstdint>

#include "facts/gpu_sample.h"
#include "host/files/host.h"
#include "host/process/owner_names.h"

namespace cufit::host {

// `pid` of this pid namespace. What was read is kept in `names` as long as the process is the same and has the same program;
// it is read again after about a minute (a process can be moved into another cgroup). Where it is not in /proc - it has ended,
// or it is in a pid namespace that cannot be seen from here - nothing is told.
//
// Not knowable here: whether the driver spoke of this process. Between its answer and this one a pid can be given to another
// process, and a driver that tells a container the pids of the machine around it may name one that is somebody else's here.
facts::ProcessOwner read_process_owner(const Host& host, uint32_t pid, OwnerNames& names);

}  // namespace cufit::host
