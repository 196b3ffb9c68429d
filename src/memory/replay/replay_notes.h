// SPDX-License-Identifier: Apache-2.0
// What a compiled program says of itself: which requests were workspaces, which failures were
// caught, what the driver did between the segments.
#pragma once

#include "memory/replay/replay_program.h"

namespace cufit::memory {

void note_program(Program& program);

}  // namespace cufit::memory
