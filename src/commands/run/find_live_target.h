// SPDX-License-Identifier: Apache-2.0
// Finds out which GPUs a program started now would see: from files where they tell, else from the
// driver, whose answer is kept for the next time (host/driver/answer_cache.h). Judged by
// resolve/live_target. Used by `cufit run`, `cufit preflight` and `cufit env`.
#pragma once

#include "host/files/host.h"
#include "resolve/live_target.h"

namespace cufit::commands {

struct LiveOptions {
  bool may_ask_driver = true;
  double driver_timeout_seconds = 10;
};

resolve::LiveTarget find_live_target(const host::Host& host, const LiveOptions& options,
                                     const knowledge::Knowledge& knowledge);

}  // namespace cufit::commands
