// SPDX-License-Identifier: Apache-2.0
// Why a replay may differ from what would really happen: ids of the texts report.mem.not_modelled.*
// in data/messages. A reason stands only where the recording or the replay shows the thing, and
// where the result depends on it as far as that can be tried.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "memory/replay/replay.h"

namespace cufit::memory {

// How a replay can be run once more to see whether its result depends on what is not known.
struct Variation {
  SyntheticMemory::Order order = SyntheticMemory::Order::driver;
  bool events_pass_at_once = false;  // frees that wait for other streams complete immediately
  bool other_reading = false;        // of Op::doubtful
};

// `log`: the segment calls of this replay. `again`: the replay under a variation.
std::vector<std::string> replay_limitations(
    const Program& program, const ReplayOptions& options, const ReplayResult& result,
    const std::vector<SegmentEvent>& log,
    const std::function<ReplayResult(const Variation&)>& again);

}  // namespace cufit::memory
