// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/allocated_walk.h"

namespace cufit::analysis {

using memory::Op;
using memory::OpKind;

AllocatedWalk::AllocatedWalk(const memory::Program& program, const Lifetimes& lifetimes)
    : program_(program), lifetimes_(lifetimes), numbers_(program) {
  for (uint32_t i = 0; i < lifetimes.initial; ++i) bytes_ += lifetimes.rows[i].block_bytes;
}

void AllocatedWalk::take(const Op& op) {
  if (op.kind == OpKind::malloc) bytes_ += lifetimes_.rows[numbers_.of(op)].block_bytes;
  if (op.kind == OpKind::free || op.kind == OpKind::free_requested)
    bytes_ -= lifetimes_.rows[numbers_.of(op)].block_bytes;
}

uint64_t AllocatedWalk::to(uint32_t event) {
  const auto& ops = program_.ops;
  while (next_ < ops.size() && ops[next_].event <= event) take(ops[next_++]);
  return bytes_;
}

AllocatedWalk::Peak AllocatedWalk::highest(uint32_t begin, uint32_t end) {
  const auto& ops = program_.ops;
  Peak peak{begin, to(begin)};
  while (next_ < ops.size() && ops[next_].event < end) {
    const uint32_t event = ops[next_].event;
    if (to(event) > peak.bytes) peak = {event, bytes_};
  }
  return peak;
}

}  // namespace cufit::analysis
