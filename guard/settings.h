// SPDX-License-Identifier: Apache-2.0
// What the launcher says by environment (guard/README.md). Read once, at the first look-up of a name.
#pragma once

#include "platform.h"

namespace guard {

struct Settings {
  bool hooking = false;  // false: every look-up and call goes straight to the driver
  char domain[512] = "";
  char ring_folder[512] = "";
  uint64_t spill_bytes = 0;  // of --spill SIZE, for this process
};
const Settings& settings();

}  // namespace guard
