// SPDX-License-Identifier: Apache-2.0
#include "memory/replay/replay_notes.h"

#include <algorithm>

#include "memory/allocator/rounding.h"

namespace cufit::memory {
namespace {

// cuDNN asks for the workspace of one convolution, launches it and frees it. Of 8 recorded programs
// without convolutions none frees a block of 1 MiB or more at once whose size is no multiple of 32;
// with convolutions 50 to 80 % of the blocks freed at once are no multiple of 4.
void note_workspaces(Program& program) {
  size_t number = program.initial_blocks.size();
  for (size_t i = 0; i + 1 < program.ops.size(); ++i) {
    Op& op = program.ops[i];
    if (op.kind != OpKind::malloc) continue;
    const uint64_t size = program.sizes[number++];
    const Op& next = program.ops[i + 1];
    if (next.kind != OpKind::free || next.slot != op.slot || size < k_mib) continue;
    op.freed_at_once = true;
    if (size % 4 != 0) program.has_workspaces = true;
  }
}

void note_largest_request(Program& program) {
  const auto take = [&](uint64_t size) {
    program.largest_request = std::max(program.largest_request, size);
  };
  const auto first = static_cast<std::ptrdiff_t>(program.initial_blocks.size());
  std::for_each(program.sizes.begin() + first, program.sizes.end(), take);
  std::for_each(program.failed_sizes.begin(), program.failed_sizes.end(), take);
}

// After a failure that ends a program it only frees. A library that has another way asks again at
// once, or does without after several attempts in a row; then the program goes on.
void note_failures(Program& program) {
  bool asks_later = false;
  for (size_t i = program.ops.size(); i-- > 0;) {
    Op& op = program.ops[i];
    if (op.kind == OpKind::malloc) asks_later = true;
    if (op.kind == OpKind::free_requested) program.waits_for_events = true;
    if (op.kind != OpKind::failed) continue;
    const auto is = [&](size_t other, OpKind kind) {
      return other < program.ops.size() && program.ops[other].kind == kind;
    };
    const bool asks_next = is(i + 1, OpKind::malloc) || is(i + 1, OpKind::failed);
    op.caught = asks_next || (asks_later && i > 0 && is(i - 1, OpKind::failed));
  }
}

// Segment calls at the events of the ops that they were made for.
Placement placement_of(const Program& program) {
  std::vector<PlacedCall> calls;
  calls.reserve(program.segment_calls.size());
  for (const SegmentWindow& window : program.windows)
    while (calls.size() < window.end)
      calls.push_back({program.segment_calls[calls.size()], program.ops[window.op].event});
  AddressSpace::Ranges initial;
  for (const SegmentView& segment : program.initial) initial[segment.address] = segment.size;
  return infer_placement(calls, initial);
}

}  // namespace

void note_program(Program& program) {
  note_largest_request(program);
  note_workspaces(program);
  note_failures(program);
  program.placement = placement_of(program);
}

}  // namespace cufit::memory
