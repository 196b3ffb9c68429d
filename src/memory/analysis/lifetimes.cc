// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/lifetimes.h"

#include <unordered_map>
#include <utility>

#include "base/huge_pages.h"
#include "memory/allocator/rounding.h"

namespace cufit::analysis {
namespace {

using memory::Action;
using memory::BlockUse;
using memory::BlockView;
using memory::Op;
using memory::OpKind;
using memory::Program;
using memory::Recording;
using memory::SegmentView;
using memory::Snapshot;
using memory::TraceEvent;

// While a program dies it asks for little more: the loss to be logged, a state to be saved.
constexpr uint32_t k_allocs_of_an_end = 64;

class Builder {
 public:
  Builder(const Snapshot& snapshot, uint32_t device, const Recording& recording,
          const Program& program)
      : snapshot_(snapshot),
        device_(device),
        first_(snapshot.traces[device].first),
        recording_(recording),
        program_(program),
        numbers_(program) {}

  Lifetimes build() {
    out_.events = static_cast<uint32_t>(recording_.events.size());
    reserve_large(out_.rows, program_.addresses.size());
    out_.rows.resize(program_.addresses.size());
    add_initial();
    for (const Op& op : program_.ops) add(op);
    add_final_stacks();
    out_.work_end = find_work_end();
    return std::move(out_);
  }

 private:
  const TraceEvent& event(uint32_t index) const { return snapshot_.events[first_ + index]; }

  void add_initial() {
    out_.initial = static_cast<uint32_t>(program_.initial_blocks.size());
    uint32_t number = 0;
    for (const SegmentView& segment : program_.initial)
      for (const BlockView& block : segment.blocks) {
        if (block.state == BlockUse::inactive) continue;
        Lifetime& row = out_.rows[number++];
        row.address = block.address;
        row.requested_bytes = block.requested_size;
        row.pool = static_cast<uint16_t>(segment.pool);
        row.has_context = false;
        if (block.state == BlockUse::pending_free) row.free_requested = 0;
      }
  }

  void add(const Op& op) {
    if (op.kind == OpKind::empty_cache || op.kind == OpKind::failed) return;  // about no block
    const uint32_t number = numbers_.of(op);
    Lifetime& row = out_.rows[number];
    switch (op.kind) {
      case OpKind::malloc: {
        const TraceEvent& from = event(op.event);
        row.address = program_.addresses[number];
        row.requested_bytes = program_.sizes[number];
        row.alloc_event = op.event;
        row.stack = from.stack;
        row.context = from.context;
        row.pool = op.pool;
        break;
      }
      case OpKind::free:
        row.free_requested = op.event;
        row.free_completed = completion(op);
        break;
      case OpKind::free_requested:
        row.free_requested = op.event;
        break;
      case OpKind::free_completed:
        row.free_completed = op.event;
        break;
      default:
        return;
    }
    if (!row.has_context && op.kind != OpKind::malloc) {
      row.context = event(op.event).context;
      row.has_context = true;
    }
  }

  // An op of kind `free` stands for two events that only calls of segments can part.
  uint32_t completion(const Op& op) const {
    if (recording_.events.action(op.event) == Action::free_completed) return op.event;
    uint32_t at = op.event + 1;
    while (at + 1 < out_.events && recording_.events.action(at) != Action::free_completed) ++at;
    return at < out_.events ? at : op.event;
  }

  // A program that goes on after an out-of-memory has caught it.
  uint32_t find_work_end() const {
    uint32_t last_alloc = 0, allocs_after_oom = 0;
    for (size_t i = program_.ops.size(); i-- > 0;) {
      const Op& op = program_.ops[i];
      if (op.kind == OpKind::failed && op.event != 0) return op.event;
      if (op.kind != OpKind::malloc) continue;
      if (allocs_after_oom == 0) last_alloc = op.event;
      if (++allocs_after_oom > k_allocs_of_an_end) break;
    }
    return last_alloc;
  }

  // Only blocks that are there at the end can tell who made them before the trace began.
  void add_final_stacks() {
    if (out_.initial == 0) return;
    std::unordered_map<uint64_t, const memory::Block*> blocks;
    for (const memory::Segment& segment : snapshot_.segments)
      if (segment.device == device_)
        for (const memory::Block& block : segment.blocks)
          if (block.state != memory::BlockState::inactive) blocks[block.address] = &block;
    for (uint32_t i = 0; i < out_.initial; ++i) {
      Lifetime& row = out_.rows[i];
      const auto found = blocks.find(row.address);
      // Blocks have an empty list also where no stacks were recorded.
      if (found != blocks.end() && row.free_completed == k_never &&
          found->second->stack != memory::k_empty_stack)
        row.stack = found->second->stack;
    }
  }

  const Snapshot& snapshot_;
  uint32_t device_;
  size_t first_;
  const Recording& recording_;
  const Program& program_;
  memory::AllocationNumbers numbers_;
  Lifetimes out_;
};

void add_lifetime_sizes(Lifetimes& lifetimes, const memory::Settings& settings,
                        const memory::Verification& check, const std::vector<uint64_t>& bytes) {
  lifetimes.sizes_are_exact = check.allocations == check.addresses_matched;
  for (size_t i = 0; i < lifetimes.rows.size(); ++i) {
    Lifetime& row = lifetimes.rows[i];
    row.block_bytes =
        bytes[i] != 0 ? bytes[i]
                      : memory::round_size(row.requested_bytes, settings.roundup_power2_divisions);
  }
}

}  // namespace

Lifetimes lifetimes_without_sizes(const Snapshot& snapshot,
                                  const memory::VerifiedRecording& verified) {
  return Builder(snapshot, verified.device, verified.recording, *verified.program).build();
}

void add_sizes(Lifetimes& lifetimes, const memory::VerifiedRecording& verified) {
  add_lifetime_sizes(lifetimes, verified.recording.settings, verified.verification,
                     verified.block_bytes);
}

Lifetimes lifetimes_of(const Snapshot& snapshot, const memory::VerifiedRecording& verified) {
  Lifetimes lifetimes = lifetimes_without_sizes(snapshot, verified);
  add_sizes(lifetimes, verified);
  return lifetimes;
}

Lifetimes lifetimes_of(const Snapshot& snapshot, uint32_t device, const Recording& recording,
                       const Program& program) {
  memory::ReplayOptions options;
  options.allocator.settings = recording.settings;
  options.allocator.version = recording.version;
  std::vector<uint64_t> block_bytes;
  const memory::Verification check = memory::verify(program, options, &block_bytes);
  Lifetimes lifetimes = Builder(snapshot, device, recording, program).build();
  add_lifetime_sizes(lifetimes, recording.settings, check, block_bytes);
  return lifetimes;
}

}  // namespace cufit::analysis
