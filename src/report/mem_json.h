// SPDX-License-Identifier: Apache-2.0
// JSON parts that the schemas cufit.mem.*/1 share.
#pragma once

#include <nlohmann/json.hpp>

#include "memory/what_if.h"

namespace cufit::report {

using MemJson = nlohmann::ordered_json;

// {"settings", "peak_allocated_bytes", "peak_reserved_bytes", "segment_events",
//  "segment_events_matched", ...}: the recorded run and how far the model follows it.
MemJson recorded_json(const memory::Study& study);
MemJson size_or_null(const std::optional<uint64_t>& bytes);

}  // namespace cufit::report
