// SPDX-License-Identifier: Apache-2.0
// JSON parts that the schemas cufit.mem.*/1 share.
#pragma once

#include "memory/replay/what_if.h"
#include "report/json/json_value.h"

namespace cufit::report {

// {"settings", "peak_allocated_bytes", "peak_reserved_bytes", "segment_events",
//  "segment_events_matched", ...}: the recorded run and how far the model follows it.
Json recorded_json(const memory::VerifiedRecording& verified);

}  // namespace cufit::report
