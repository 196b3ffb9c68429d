// SPDX-License-Identifier: Apache-2.0
// What a child that asks the driver wrote until its end, with a limit of time: one question, one child. Used by
// nvml_limits.cc and nvml_room.cc; driver_child.cc asks two at once and has its own loop.
#pragma once

#include "base/result.h"
#include "host/driver/driver_wire.h"
#include "host/process/spawn.h"

namespace cufit::host {

// Ends the child where the time is over; never waits for one that sits in the kernel.
// Error{timeout}, Error{io}: it did not say everything; its last call is named.
Result<ChildAnswers> read_worker_answer(const SpawnedWorker& worker, double limit_seconds);

}  // namespace cufit::host
