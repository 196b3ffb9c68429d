// SPDX-License-Identifier: Apache-2.0
// One rule per cause: facts in, the cause with its numbers out, or nothing. causes_of() asks them
// in the order of its table.
#pragma once

#include <optional>

#include "memory/analysis/cause.h"

namespace cufit::analysis {

using Rule = std::optional<Cause> (*)(const OomCase& facts);

// cause_rules_device.cc: what lies outside the program's tensors.
std::optional<Cause> runaway_request(const OomCase& facts);
// The trace proves that the card gave more, or it gives less than any card has.
std::optional<Cause> other_process(const OomCase& facts);
// Nothing but the size of a workspace says what card it is; or something grows.
std::optional<Cause> other_process_maybe(const OomCase& facts);
std::optional<Cause> gpu_quota_limit(const OomCase& facts);
std::optional<Cause> cudagraph_pool(const OomCase& facts);
std::optional<Cause> cross_stream_pending(const OomCase& facts);
std::optional<Cause> fragmentation(const OomCase& facts);
// Fragmentation where no earlier step proves it: a replay gets past this point, or may.
std::optional<Cause> rescued_request(const OomCase& facts);
std::optional<Cause> tight_limit(const OomCase& facts);

// cause_rules_kept.cc: tensors that stay.
std::optional<Cause> weights_exceed_capacity(const OomCase& facts);
std::optional<Cause> stale_reference(const OomCase& facts);
std::optional<Cause> optimizer_state(const OomCase& facts);
std::optional<Cause> growth(const OomCase& facts);  // graph_retained or tensors_kept
// Growth that a trace which began late is too short to prove: the last steps only.
std::optional<Cause> growth_maybe(const OomCase& facts);
std::optional<Cause> eval_without_no_grad(const OomCase& facts);

// The name of a function on the stack that evaluates; empty: there is none.
std::string evaluating_frame(const OomCase& facts, uint32_t stack);

// cause_rules_outputs.cc: results of an evaluation that stay, batch after batch, or are joined at
// its end.
std::optional<Cause> kept_outputs(const OomCase& facts);

// cause_rules_peak.cc: what one pass needs.
std::optional<Cause> attention_quadratic(const OomCase& facts);
std::optional<Cause> autotune_workspace(const OomCase& facts);
std::optional<Cause> decode_spike(const OomCase& facts);
std::optional<Cause> oversized_input(const OomCase& facts);
std::optional<Cause> activation_peak(const OomCase& facts);

// Blocks lived when the trace began: it knows only the last part of the run.
inline bool began_late(const OomCase& facts) { return facts.lifetimes.initial > 0; }
// What would have been allocated with the request that failed.
inline uint64_t needed(const OomCase& facts) {
  return facts.at.allocated_bytes + facts.oom->rounded;
}
inline uint64_t held(const OomCase& facts, Category category) {
  return facts.held[static_cast<size_t>(category)];
}

}  // namespace cufit::analysis
