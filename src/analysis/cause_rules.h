// SPDX-License-Identifier: Apache-2.0
// One rule per cause: facts in, the cause with its numbers out, or nothing. causes_of() asks them
// in the order of its table.
#pragma once

#include <optional>

#include "analysis/cause.h"

namespace cufit::analysis {

using Rule = std::optional<Cause> (*)(const Case& facts);

// cause_rules_device.cc: what lies outside the program's tensors.
std::optional<Cause> runaway_request(const Case& facts);
// The trace proves that the card gave more, or it gives less than any card has.
std::optional<Cause> other_process(const Case& facts);
// Nothing but the size of a workspace says what card it is; or something grows.
std::optional<Cause> other_process_maybe(const Case& facts);
std::optional<Cause> gpu_quota_limit(const Case& facts);
std::optional<Cause> cudagraph_pool(const Case& facts);
std::optional<Cause> cross_stream_pending(const Case& facts);
std::optional<Cause> fragmentation(const Case& facts);
// Fragmentation where no earlier step proves it: a replay gets past this point, or may.
std::optional<Cause> rescued_request(const Case& facts);
std::optional<Cause> tight_limit(const Case& facts);

// cause_rules_kept.cc: tensors that stay.
std::optional<Cause> weights_exceed_capacity(const Case& facts);
std::optional<Cause> stale_reference(const Case& facts);
std::optional<Cause> optimizer_state(const Case& facts);
std::optional<Cause> growth(const Case& facts);  // graph_retained or tensors_kept
// Growth that a trace which began late is too short to prove: the last steps only.
std::optional<Cause> growth_maybe(const Case& facts);
std::optional<Cause> eval_without_no_grad(const Case& facts);

// cause_rules_peak.cc: what one pass needs.
std::optional<Cause> attention_quadratic(const Case& facts);
std::optional<Cause> autotune_workspace(const Case& facts);
std::optional<Cause> decode_spike(const Case& facts);
std::optional<Cause> oversized_input(const Case& facts);
std::optional<Cause> activation_peak(const Case& facts);

// Blocks lived when the trace began: it knows only the last part of the run.
inline bool began_late(const Case& facts) { return facts.lifetimes.initial > 0; }
// What would have been allocated with the request that failed.
inline uint64_t needed(const Case& facts) { return facts.at.allocated_bytes + facts.oom->rounded; }
inline uint64_t held(const Case& facts, Category category) {
  return facts.held[static_cast<size_t>(category)];
}

}  // namespace cufit::analysis
