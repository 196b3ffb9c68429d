// SPDX-License-Identifier: Apache-2.0
// The whole training steps of a recording as the events of a traced program
// (formats/model/trace_events.h), so that what answers for traces answers for it as well. Requests
// of the libraries are among them; one stream and the default pool are assumed.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/model/batch_growth.h"
#include "formats/model/trace_events.h"
#include "memory/snapshot/snapshot.h"
#include "memory/replay/what_if.h"

namespace cufit::analysis {

struct RecordedTrace {
  formats::TraceEvents events;               // fact "batch"; may end in an unfinished step
  std::vector<formats::BatchGrowth> growth;  // by storage
  std::vector<uint32_t> alloc_of;            // by storage: k_before or the event of the recording
  uint32_t steps = 0;
  bool from_start = false;      // nothing lived when it began
  bool has_workspaces = false;  // of convolutions
  bool several_streams = false, private_pools = false, empties_cache = false;
  bool has_stacks = false;
  bool ran_short = false;  // a request could not be served, and the run went on
};

// Error{unsupported} where no step can be told, none ended, or one ran out of memory and did not
// end.
Result<RecordedTrace> recorded_trace(const memory::Snapshot& snapshot,
                                     const memory::VerifiedRecording& verified, uint64_t batch);

}  // namespace cufit::analysis
