// SPDX-License-Identifier: Apache-2.0
#include "memory/program_notes.h"

#include <algorithm>

#include "memory/rounding.h"

namespace cufit::memory {
namespace {

// cuDNN asks for the workspace of one convolution, launches it and frees it. Of 8 recorded programs
// without convolutions none frees a block of 1 MiB or more at once whose size is no multiple of 32;
// with convolutions 50 to 80 % of the blocks freed at once are no multiple of 4.
void note_workspaces(Program& program) {
  for (size_t i = 0; i + 1 < program.ops.size(); ++i) {
    Op& op = program.ops[i];
    const Op& next = program.ops[i + 1];
    if (op.kind != OpKind::malloc || next.kind != OpKind::free || next.block != op.block) continue;
    if (op.size < k_mib) continue;
    op.freed_at_once = true;
    if (op.size % 4 != 0) program.has_workspaces = true;
  }
}

void note_largest_request(Program& program) {
  for (const Op& op : program.ops)
    if (op.kind == OpKind::malloc || op.kind == OpKind::failed)
      program.largest_request = std::max(program.largest_request, op.size);
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
