// SPDX-License-Identifier: Apache-2.0
// Words that the two views of `cufit fit` share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/fit.h"

namespace cufit::report {

const char* phase_name(fit::TracePhase phase);  // "backward": a key and a word of the JSON

// The parts of the peak in the order of a report: "weights" and its bytes. The last two are beside
// what is allocated: "fragmentation", "outside_allocator".
std::vector<std::pair<std::string, uint64_t>> parts_of(const fit::Prediction& prediction);
constexpr size_t k_parts_beside = 2;

// Batch sizes that were traced, also where the traces are of programs apart.
std::vector<uint64_t> traced_batches(const fit::StepProgram& program);

}  // namespace cufit::report
