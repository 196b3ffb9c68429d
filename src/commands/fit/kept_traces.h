// SPDX-License-Identifier: Apache-2.0
// The files of traces that `cufit fit --keep` leaves.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "commands/fit/fit_tracing.h"

namespace cufit::commands {

// Of the trace of this number, while it is written.
std::string kept_trace(const TracingPlan& plan, int number);

// The name that it gets then: of a distributed program the rank, and the number of ranks where the
// plan has several, stand in it.
Result<std::string> name_kept_trace(const TracingPlan& plan, const std::string& file,
                                    const formats::TraceEvents& events, int number);

// Facts that are known only later. Read again, the file has to answer as it does now.
Result<void> keep_facts(const host::Host& files, const std::string& file,
                        const std::vector<std::pair<std::string, std::string>>& facts);

}  // namespace cufit::commands
