// SPDX-License-Identifier: Apache-2.0
// Whether two traces may run side by side. One keeps one core busy, and takes as much of the
// machine's memory as those before it did.
#pragma once

#include <cstdint>

#include "host/files/host.h"

namespace cufit::commands {

bool room_for_two(const host::Host& files, uint64_t peak_bytes);

}  // namespace cufit::commands
