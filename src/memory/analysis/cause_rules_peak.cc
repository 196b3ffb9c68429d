// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string_view>

#include "memory/analysis/allocated_walk.h"
#include "base/format.h"
#include "memory/analysis/cause_rules.h"
#include "memory/analysis/stack_roles.h"

namespace cufit::analysis {
namespace {

// Whether one of the innermost frames lies in a function or file of attention.
bool in_attention(const OomCase& facts, uint32_t stack) {
  if (stack == memory::k_no_stack) return false;
  constexpr size_t k_innermost = 3;
  const auto frames = facts.snapshot.python_frames(stack);
  for (size_t i = 0; i < std::min(frames.size(), k_innermost); ++i) {
    const memory::Frame& frame = facts.snapshot.stacks.frame(frames[i]);
    const std::string_view name = facts.snapshot.text(frame.name);
    const std::string_view file = facts.snapshot.text(frame.filename);
    if (contains(name, "attention") || contains(name, "attn") || contains(file, "attention"))
      return true;
  }
  return false;
}

bool in_convolution(const OomCase& facts, uint32_t stack) {
  if (stack == memory::k_no_stack) return false;
  const auto frames = facts.snapshot.python_frames(stack);
  if (frames.empty()) return false;
  const memory::Frame& frame = facts.snapshot.stacks.frame(frames.front());
  return contains(facts.snapshot.text(frame.filename), "torch/nn/modules/conv.py");
}

// Of all that lives or has lived, workspaces apart.
uint64_t largest_block(const OomCase& facts) {
  uint64_t largest = 0;
  for (const Lifetime& row : facts.lifetimes.rows)
    if (is_born(row, oom_event(facts))) largest = std::max(largest, row.requested_bytes);
  return largest;
}

}  // namespace

// Tensors made in attention that are much larger than anything made elsewhere: fused attention
// makes none that are larger than its input.
std::optional<Cause> attention_quadratic(const OomCase& facts) {
  if (!facts.oom) return std::nullopt;
  const bool asked = in_attention(facts, facts.oom_stack);
  const StackRoles roles(facts.snapshot);
  uint64_t elsewhere = 0;
  for (const Lifetime& row : facts.lifetimes.rows)
    if (is_allocated(row, oom_event(facts)) && roles[row.stack] == StackRole::module_call &&
        !in_attention(facts, row.stack))
      elsewhere = std::max(elsewhere, row.requested_bytes);
  if (elsewhere == 0) return std::nullopt;
  uint64_t scores = asked && facts.oom->rounded >= 2 * elsewhere ? facts.oom->rounded : 0;
  uint64_t largest = scores;
  for (const Lifetime& row : facts.lifetimes.rows) {
    if (!is_allocated(row, oom_event(facts)) || row.requested_bytes < 2 * elsewhere) continue;
    if (!in_attention(facts, row.stack)) continue;
    scores += row.block_bytes;
    largest = std::max(largest, row.requested_bytes);
  }
  if (scores * 10 < needed(facts) * 3) return std::nullopt;
  Cause cause{"attention_quadratic", Confidence::likely, {}, {}};
  cause.evidence.push_back(
      {"scores",
       {bytes("scores", scores), bytes("largest", largest), bytes("elsewhere", elsewhere)}});
  return cause;
}

namespace {

// In a run that lived: what convolutions took for a moment is the larger part of what it reserved,
// and no tensor comes near.
std::optional<Cause> large_workspace(const OomCase& facts) {
  if (!facts.verified.program->has_workspaces) return std::nullopt;
  uint64_t workspace = 0, largest = 0;
  for (const Lifetime& row : facts.lifetimes.rows) {
    const bool passing = row.alloc_event != k_before && row.free_requested == row.alloc_event + 1;
    if (passing && !in_convolution(facts, row.stack)) continue;
    uint64_t& kind = passing ? workspace : largest;
    kind = std::max(kind, row.requested_bytes);
  }
  const uint64_t reserved = facts.verified.peak_reserved;
  if (workspace / 4 < largest || workspace < reserved / 2) return std::nullopt;
  Cause cause{"autotune_workspace", Confidence::likely, {}, {}};
  cause.evidence.push_back(
      {"passing_workspace",
       {bytes("workspace", workspace), bytes("reserved", reserved), bytes("largest", largest)}});
  return cause;
}

}  // namespace

// The library's own memory: a request made in a convolution that no tensor explains.
std::optional<Cause> autotune_workspace(const OomCase& facts) {
  if (!facts.oom) return large_workspace(facts);
  if (!in_convolution(facts, facts.oom_stack)) return std::nullopt;
  const uint64_t largest = largest_block(facts);
  if (facts.oom->rounded / 4 < largest) return std::nullopt;
  Cause cause{"autotune_workspace", Confidence::likely, {}, {}};
  cause.evidence.push_back(
      {"workspace", {bytes("tried", facts.oom->rounded), bytes("largest", largest)}});
  return cause;
}

// No training, and the last work needs many times what all before it needed.
std::optional<Cause> decode_spike(const OomCase& facts) {
  if (!facts.oom || facts.steps.known() || kept_outputs(facts)) return std::nullopt;
  const uint32_t end = oom_event(facts);
  const uint32_t late = end - end / 20;
  const uint64_t before =
      late == 0 ? 0
                : AllocatedWalk(*facts.verified.program, facts.lifetimes).highest(0, late).bytes;
  if (before == 0 || needed(facts) < 4 * before) return std::nullopt;
  Cause cause{"decode_spike", Confidence::likely, {}, {}};
  cause.evidence.push_back({"late_spike",
                            {bytes("needed", needed(facts)), bytes("before", before),
                             bytes("tried", facts.oom->rounded)}});
  return cause;
}

// Steps went well, and then one needs much more. Its end was never reached, so what it needs is at
// least this.
std::optional<Cause> oversized_input(const OomCase& facts) {
  const History& history = facts.history;
  if (!facts.oom || facts.steps.finished < 2 || history.highest_before_bytes == 0)
    return std::nullopt;
  if (kept_outputs(facts)) return std::nullopt;  // no step, and no sample of it
  if (needed(facts) < history.highest_before_bytes + history.highest_before_bytes / 5)
    return std::nullopt;
  Cause cause{"oversized_input", Confidence::likely, {}, {}};
  // The first of them is not whole then.
  if (began_late(facts) && facts.steps.finished < 3) cause.confidence = Confidence::possible;
  cause.evidence.push_back(
      {"larger_step",
       {bytes("needed", needed(facts)), bytes("before", history.highest_before_bytes),
        bytes("usual", history.usual_peak_bytes), count("steps", facts.steps.finished)}});
  return cause;
}

namespace {

// Graphs of one pass share a pool, as those of torch.compile do, or have one for each part of the
// model; graphs that take turns, one for each shape, need not all be held at once.
EvidenceItem in_pools(const OomCase& facts, uint64_t graphs) {
  std::map<uint16_t, uint64_t> live;
  for (const Lifetime& row : facts.lifetimes.rows)
    if (row.pool != 0 && is_allocated(row, oom_event(facts))) live[row.pool] += row.block_bytes;
  uint64_t largest = 0;
  for (const auto& [pool, held] : live) largest = std::max(largest, held);
  if (live.size() < 2) return {"pass_in_pools", {bytes("graphs", graphs)}};
  return {"pass_in_some_pools",
          {bytes("graphs", graphs), count("pools", live.size()), bytes("largest", largest)}};
}

}  // namespace

std::optional<Cause> activation_peak(const OomCase& facts) {
  if (!facts.oom || !facts.steps.known() || kept_outputs(facts)) return std::nullopt;
  // Where a step is captured or replayed as a graph, its activations lie in the graph's pool.
  const uint64_t graphs = held(facts, Category::private_pools);
  const uint64_t pass = held(facts, Category::activations) + held(facts, Category::temporaries) +
                        graphs + facts.oom->rounded;
  if (pass * 2 < needed(facts)) return std::nullopt;
  Cause cause{"activation_peak", Confidence::likely, {}, {}};
  cause.evidence.push_back({"pass",
                            {bytes("activations", held(facts, Category::activations)),
                             bytes("temporaries", held(facts, Category::temporaries)),
                             bytes("tried", facts.oom->rounded), bytes("needed", needed(facts))}});
  if (graphs * 4 >= pass) cause.evidence.push_back(in_pools(facts, graphs));
  return cause;
}

}  // namespace cufit::analysis
