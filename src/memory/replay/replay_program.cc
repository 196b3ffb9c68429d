// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/huge_pages.h"
#include "memory/replay/initial_state.h"
#include "memory/replay/trace_compiler.h"
#include "memory/replay/replay_notes.h"

namespace cufit::memory {

uint16_t TraceCompiler::stream_of(uint64_t value) {
  if (last_index_ != UINT16_MAX && value == last_stream_) return last_index_;
  const auto found = std::find(program_.streams.begin(), program_.streams.end(), value);
  last_stream_ = value;
  last_index_ = static_cast<uint16_t>(found - program_.streams.begin());
  if (found != program_.streams.end()) return last_index_;
  if (program_.streams.size() == k_max_streams) {
    ++program_.contradictions;
    return last_index_ = 0;
  }
  program_.streams.push_back(value);
  return last_index_;
}

// Live at the start is what is freed without an alloc before, and what lives at the end without
// one. The calls of segments and whether there are failures are seen on the way.
void TraceCompiler::find_initial_blocks() {
  std::vector<InitialBlock> blocks;
  AddressMap seen;
  for (uint32_t i = 0; i < recording_.events.size(); ++i) {
    const RecordedEvent event = recording_.events[i];
    bool is_new = false;
    if (event.action == Action::alloc) {
      seen.find_or_add(event.address, is_new);
    } else if (event.action == Action::free_completed) {
      seen.find_or_add(event.address, is_new);
      if (is_new) blocks.push_back({event.address, event.size, 0, i});
    } else if (is_segment_call(event.action)) {
      add_segment_call(event, i);
    } else if (event.action == Action::oom) {
      has_failures_ = true;
    }
  }
  for (const SegmentView& segment : recording_.final_segments)
    for (const BlockView& block : segment.blocks)
      if (block.state != BlockUse::inactive && seen.find(block.address) == nullptr)
        blocks.push_back({block.address, block.requested_size, block.size});
  program_.initial = initial_segments(recording_, program_.call_events, std::move(blocks));
  for (SegmentView& segment : program_.initial) {
    segment.pool = pool_of(segment.pool);
    for (BlockView& block : segment.blocks) {
      if (block.state == BlockUse::inactive) continue;
      bool is_new = false;
      live_.find_or_add(block.address, is_new).value = take_slot();
      program_.addresses.push_back(block.address);
      program_.sizes.push_back(block.requested_size);
      program_.initial_blocks.push_back(block.address);
    }
  }
}

uint16_t TraceCompiler::pool_of(uint32_t pool) {
  if (pool > k_max_pools) {
    ++program_.contradictions;
    pool = 0;
  }
  program_.pools = std::max(program_.pools, pool);
  return static_cast<uint16_t>(pool);
}

// Written where it stays: one that is made elsewhere and then copied makes the processor wait.
Op& TraceCompiler::push(OpKind kind, uint32_t slot, const RecordedEvent& event, uint32_t index) {
  Op& op = program_.ops.emplace_back();
  op.slot = slot;
  op.event = index;
  op.stream = stream_of(event.stream);
  op.pool = pool_of(event.pool);
  op.kind = kind;
  return op;
}

uint32_t TraceCompiler::take_slot() {
  if (free_slots_.empty()) return program_.slots++;
  const uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

void TraceCompiler::add_malloc(const RecordedEvent& event, uint32_t index) {
  bool is_new = false;
  AddressMap::Entry& entry = live_.find_or_add(event.address, is_new);
  if (!is_new) ++program_.contradictions;
  entry.value = take_slot();
  entry.mark = false;
  program_.addresses.push_back(event.address);
  program_.sizes.push_back(event.size);
  push(OpKind::malloc, entry.value, event, index);
}

void TraceCompiler::add_free(const RecordedEvent& event, uint32_t index) {
  AddressMap::Entry* const found = live_.find(event.address);
  const bool again = found != nullptr && found->mark && event.action == Action::free_requested;
  if (found == nullptr || again) {
    ++program_.contradictions;
    return;
  }
  const uint32_t slot = found->value;
  if (event.action == Action::free_requested) {
    found->mark = true;
    push(OpKind::free_requested, slot, event, index);
    return;
  }
  const bool requested = found->mark;
  live_.erase(found);
  free_slots_.push_back(slot);
  Op* before = program_.ops.empty() ? nullptr : &program_.ops.back();
  if (before != nullptr && before->kind == OpKind::free_requested && before->slot == slot) {
    before->kind = OpKind::free;
    return;
  }
  push(requested ? OpKind::free_completed : OpKind::free, slot, event, index);
}

// The usual free: its completion is the next event. False: it is another, and nothing was done.
bool TraceCompiler::add_whole_free(const RecordedEvent& event, uint32_t index) {
  if (index + 1 == recording_.events.size()) return false;
  const RecordedEvent next = recording_.events[index + 1];
  if (next.action != Action::free_completed || next.address != event.address) return false;
  const AddressMap::Entry* const found = live_.find(event.address);
  if (found == nullptr || found->mark) return false;
  push(OpKind::free, found->value, event, index);
  free_slots_.push_back(found->value);
  live_.erase(found);
  return true;
}

void TraceCompiler::add(const RecordedEvent& event, uint32_t index) {
  switch (event.action) {
    case Action::alloc:
      add_malloc(event, index);
      break;
    case Action::free_requested:
    case Action::free_completed:
      add_free(event, index);
      break;
    case Action::oom:
      push(OpKind::failed, static_cast<uint32_t>(program_.failed_sizes.size()), event, index);
      program_.failed_sizes.push_back(event.size);
      break;
    default:
      break;
  }
}

Program TraceCompiler::compile() {
  find_initial_blocks();
  find_peak_reserved();
  // An alloc and the two events of its free make two ops; a ring that begins among frees a few
  // more.
  reserve_large(program_.ops, recording_.events.size() * 11 / 16);
  const size_t allocations = program_.addresses.size() + recording_.events.size() * 3 / 8;
  reserve_large(program_.addresses, allocations);
  reserve_large(program_.sizes, allocations);
  for (size_t i = 0; i < recording_.events.size(); ++i) {
    const RecordedEvent event = recording_.events[i];
    const auto index = static_cast<uint32_t>(i);
    if (is_segment_call(event.action)) {
      release_origins_.see(event);
      ++calls_;
      continue;
    }
    // Segment calls precede the alloc or oom that they were made for. If the last of them gave
    // memory back and no oom follows, no request was being served: it was empty_cache, unless
    // stacks tell otherwise.
    if (only_released() && event.action != Action::oom && !is_under_way(i)) add_empty_cache(calls_);
    if (event.action == Action::free_requested && add_whole_free(event, index)) {
      ++i;
      continue;
    }
    const bool asks = event.action == Action::alloc || event.action == Action::oom;
    if (asks) split_off_empty_cache(event, index);
    add(event, index);
    if (asks) close_window();
  }
  if (window_begin_ < calls_) add_empty_cache(calls_);
  program_.recorded_peak = peak_reserved_;
  // A guess, which the reason `empty_cache` goes with. A limit lies between what was held at most
  // and what it refused, and a run that meets it comes close (of three real ones two within a
  // tenth); who calls empty_cache() mostly does so also where nothing is asked for right after it.
  program_.doubts_are_limits =
      !empties_cache_ && least_doubtful_ - peak_reserved_ <= peak_reserved_ / 8;
  note_program(program_);
  return std::move(program_);
}

Program compile_program(const Recording& recording) { return TraceCompiler(recording).compile(); }

}  // namespace cufit::memory
