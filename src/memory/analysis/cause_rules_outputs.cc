// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string_view>

#include "base/format.h"
#include "memory/analysis/cause_rules.h"
#include "memory/analysis/stack_roles.h"

namespace cufit::analysis {
namespace {

constexpr uint32_t k_least_batches = 3;  // fewer blocks of one line are no collection

// Blocks of one line that stay, made since the last training step.
struct KeptOutputs {
  uint32_t stack = memory::k_no_stack;
  uint32_t blocks = 0;
  uint64_t requested_bytes = 0, block_bytes = 0, largest = 0;
  uint32_t first_event = 0, last_event = 0;
};

// Where the training that was over ended; 0 where there was none.
uint32_t end_of_training(const OomCase& facts) {
  const Steps& steps = facts.steps;
  if (steps.finished == 0) return 0;
  return steps.finished < steps.begins.size() ? steps.begins[steps.finished]
                                              : facts.lifetimes.work_end;
}

// The line that holds most.
std::optional<KeptOutputs> largest_collection(const OomCase& facts) {
  const uint32_t since = end_of_training(facts);
  std::map<uint32_t, KeptOutputs> by_stack;
  for (const Lifetime& row : facts.lifetimes.rows) {
    if (row.stack == memory::k_no_stack || row.pool != 0 || row.alloc_event == k_before) continue;
    if (row.alloc_event < since || !is_allocated(row, oom_event(facts))) continue;
    const uint32_t stack = facts.snapshot.python_stack(row.stack);
    if (facts.snapshot.stacks[stack].empty()) continue;
    KeptOutputs& kept = by_stack[stack];
    if (kept.blocks++ == 0) kept.first_event = row.alloc_event;
    kept.stack = stack;
    kept.last_event = row.alloc_event;
    kept.requested_bytes += row.requested_bytes;
    kept.block_bytes += row.block_bytes;
    kept.largest = std::max(kept.largest, row.requested_bytes);
  }
  std::optional<KeptOutputs> best;
  for (const auto& [stack, kept] : by_stack)
    if (!best || kept.block_bytes > best->block_bytes) best = kept;
  // Of one size, but that the last batch of a data set is smaller.
  if (!best || best->blocks < k_least_batches ||
      best->requested_bytes * 10 < best->largest * best->blocks * 7)
    return std::nullopt;
  return best;
}

// All of them joined by one request, as torch.cat and torch.stack do, outside of any module: a
// module joins what it computes in training, too.
bool are_joined(const OomCase& facts, const KeptOutputs& kept) {
  const uint64_t asked = facts.oom->rounded, all = kept.requested_bytes;
  const uint64_t apart = std::max(asked, all) - std::min(asked, all);
  return apart * 50 <= all && StackRoles(facts.snapshot)[facts.oom_stack] == StackRole::other;
}

bool is_checkpointing(const OomCase& facts, uint32_t stack) {
  const auto frames = facts.snapshot.stacks[stack];
  return std::any_of(frames.begin(), frames.end(), [&](uint32_t number) {
    const memory::Frame& frame = facts.snapshot.stacks.frame(number);
    return contains(facts.snapshot.text(frame.filename), "utils/checkpoint.py");
  });
}

// One or few blocks of each pass stay and the rest of it goes, in a function that evaluates.
bool come_batch_by_batch(const OomCase& facts, const KeptOutputs& kept) {
  const std::string name = evaluating_frame(facts, kept.stack);
  if (name.empty() || contains(name, "generate") || is_checkpointing(facts, kept.stack))
    return false;
  uint64_t made = 0, stay = 0;
  for (const Lifetime& row : facts.lifetimes.rows) {
    if (row.alloc_event == k_before || row.alloc_event <= kept.first_event ||
        row.alloc_event > kept.last_event)
      continue;
    ++made;
    stay += is_allocated(row, oom_event(facts)) ? 1 : 0;
  }
  return stay <= uint64_t{3} * kept.blocks && made >= 3 * stay;
}

// The function that both made the blocks and failed, else the one that evaluates.
const memory::Frame& collecting_frame(const OomCase& facts, uint32_t stack) {
  const auto same_function = [&](uint32_t a, uint32_t b) {
    const memory::Frame &one = facts.snapshot.stacks.frame(a),
                        &other = facts.snapshot.stacks.frame(b);
    return one.name == other.name && one.filename == other.filename;
  };
  const auto frames = facts.snapshot.stacks[stack];
  if (facts.oom_stack != memory::k_no_stack)
    for (const uint32_t number : frames)
      for (const uint32_t asking : facts.snapshot.python_frames(facts.oom_stack))
        if (same_function(number, asking)) return facts.snapshot.stacks.frame(number);
  return facts.snapshot.stacks.frame(frames.back());
}

std::string place_text(const OomCase& facts, const memory::Frame& frame) {
  const std::string_view file = facts.snapshot.text(frame.filename);
  return format("{}:{} {}", std::string(file.substr(file.rfind('/') + 1)), frame.line,
                std::string(facts.snapshot.text(frame.name)));
}

}  // namespace

std::optional<Cause> kept_outputs(const OomCase& facts) {
  if (!facts.oom) return std::nullopt;
  const std::optional<KeptOutputs> kept = largest_collection(facts);
  if (!kept) return std::nullopt;
  const bool joined = are_joined(facts, *kept);
  const uint64_t asked_for_them = joined ? facts.oom->rounded : 0;
  // Without them the request would be a quarter smaller at least.
  if ((kept->block_bytes + asked_for_them) * 4 < needed(facts)) return std::nullopt;
  if (!joined && !come_batch_by_batch(facts, *kept)) return std::nullopt;
  Cause cause{"tensors_kept", Confidence::likely, {}, {}};
  cause.evidence.push_back(
      {"outputs_kept",
       {count("blocks", kept->blocks), bytes("each", kept->largest),
        bytes("all", kept->block_bytes),
        text("place", place_text(facts, collecting_frame(facts, kept->stack)))}});
  if (joined) cause.evidence.push_back({"outputs_joined", {bytes("tried", facts.oom->rounded)}});
  return cause;
}

}  // namespace cufit::analysis
