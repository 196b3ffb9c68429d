// SPDX-License-Identifier: Apache-2.0
// Which storages of two recordings of one program at different batch sizes are the same ones. The
// programs may differ a little: libraries choose other algorithms at other sizes. Used by
// recorded_program.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/model/trace_events.h"

namespace cufit::fit {

constexpr uint32_t k_unmatched = UINT32_MAX;

// By storage of `base`: the storage of `other`. Pairs come in the order of both; a pair has the
// same site, where sites are known, and sizes that can be one size at two batch sizes.
std::vector<uint32_t> match_recordings(const formats::TraceEvents& base, uint64_t base_batch,
                                       const formats::TraceEvents& other, uint64_t other_batch);

}  // namespace cufit::fit
