// SPDX-License-Identifier: Apache-2.0
#include "memory/program.h"

#include <algorithm>
#include <unordered_map>

#include "memory/initial_state.h"
#include "memory/program_notes.h"

namespace cufit::memory {
namespace {

struct LiveBlock {
  uint32_t number;
  bool requested;  // free_requested was seen
};

class Compiler {
 public:
  explicit Compiler(const Recording& recording) : recording_(recording) {}
  Program compile();

 private:
  void find_initial_blocks();
  void add(const RecordedEvent& event, uint32_t index);
  void add_malloc(const RecordedEvent& event, uint32_t index);
  void add_free(const RecordedEvent& event, uint32_t index);
  void add_segment_call(const RecordedEvent& event);
  void add_empty_cache(const RecordedEvent& event, uint32_t index);
  bool only_released() const;
  void find_peak_reserved();
  void split_off_empty_cache(const RecordedEvent& event, uint32_t index);
  void close_window() { close_window_at(program_.segment_calls.size()); }
  void close_window_at(size_t end);
  void push(Op op, const RecordedEvent& event, uint32_t index);
  uint16_t stream_of(uint64_t value);
  uint16_t pool_of(uint32_t pool);

  const Recording& recording_;
  Program program_;
  std::unordered_map<uint64_t, LiveBlock> live_;
  size_t window_begin_ = 0;  // of segment_calls
  uint64_t reserved_ = 0;    // before them
  uint64_t peak_reserved_ = 0;
  uint64_t last_stream_ = 0;
  uint16_t last_index_ = UINT16_MAX;
};

uint16_t Compiler::stream_of(uint64_t value) {
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
// one.
void Compiler::find_initial_blocks() {
  std::vector<InitialBlock> blocks;
  std::unordered_map<uint64_t, bool> born;  // address -> lives now, of those with an alloc
  born.reserve(recording_.events.size() / 4);
  for (uint32_t i = 0; i < recording_.events.size(); ++i) {
    const RecordedEvent& event = recording_.events[i];
    if (event.action == RecordedAction::alloc) {
      born[event.address] = true;
    } else if (event.action == RecordedAction::free_completed) {
      const auto [at, is_new] = born.try_emplace(event.address, false);
      if (is_new) blocks.push_back({event.address, event.size, 0, i});
      at->second = false;
    }
  }
  for (const SegmentView& segment : recording_.final_segments)
    for (const BlockView& block : segment.blocks)
      if (block.state != BlockUse::inactive && born.find(block.address) == born.end())
        blocks.push_back({block.address, block.requested_size, block.size});
  program_.initial = initial_segments(recording_, std::move(blocks));
  for (SegmentView& segment : program_.initial) {
    segment.pool = pool_of(segment.pool);
    for (BlockView& block : segment.blocks) {
      if (block.state == BlockUse::inactive) continue;
      const auto number = static_cast<uint32_t>(program_.addresses.size());
      live_[block.address] = {number, false};
      program_.addresses.push_back(block.address);
      program_.initial_blocks.push_back(block.address);
    }
  }
}

uint16_t Compiler::pool_of(uint32_t pool) {
  if (pool > k_max_pools) {
    ++program_.contradictions;
    pool = 0;
  }
  program_.pools = std::max(program_.pools, pool);
  return static_cast<uint16_t>(pool);
}

void Compiler::push(Op op, const RecordedEvent& event, uint32_t index) {
  op.event = index;
  op.stream = stream_of(event.stream);
  op.pool = pool_of(event.pool);
  program_.ops.push_back(op);
}

void Compiler::add_malloc(const RecordedEvent& event, uint32_t index) {
  Op op;
  op.size = event.size;
  op.block = static_cast<uint32_t>(program_.addresses.size());
  const auto [at, is_new] = live_.try_emplace(event.address, LiveBlock{op.block, false});
  if (!is_new) {
    ++program_.contradictions;
    at->second = {op.block, false};
  }
  program_.addresses.push_back(event.address);
  push(op, event, index);
}

void Compiler::add_free(const RecordedEvent& event, uint32_t index) {
  const auto found = live_.find(event.address);
  const bool again = found != live_.end() && found->second.requested &&
                     event.action == RecordedAction::free_requested;
  if (found == live_.end() || again) {
    ++program_.contradictions;
    return;
  }
  Op op;
  op.block = found->second.number;
  if (event.action == RecordedAction::free_requested) {
    op.kind = OpKind::free_requested;
    found->second.requested = true;
    push(op, event, index);
    return;
  }
  const bool requested = found->second.requested;
  live_.erase(found);
  Op* before = program_.ops.empty() ? nullptr : &program_.ops.back();
  if (before != nullptr && before->kind == OpKind::free_requested && before->block == op.block) {
    before->kind = OpKind::free;
    return;
  }
  op.kind = requested ? OpKind::free_completed : OpKind::free;
  push(op, event, index);
}

void Compiler::add_segment_call(const RecordedEvent& event) {
  const auto kind = static_cast<RecordedCall::Kind>(
      static_cast<uint8_t>(event.action) - static_cast<uint8_t>(RecordedAction::segment_alloc));
  program_.segment_calls.push_back({kind, event.address, event.size});
}

void Compiler::add(const RecordedEvent& event, uint32_t index) {
  switch (event.action) {
    case RecordedAction::alloc:
      add_malloc(event, index);
      break;
    case RecordedAction::free_requested:
    case RecordedAction::free_completed:
      add_free(event, index);
      break;
    case RecordedAction::oom: {
      Op op;
      op.kind = OpKind::failed;
      op.size = event.size;
      push(op, event, index);
      break;
    }
    default:
      break;
  }
}

void Compiler::add_empty_cache(const RecordedEvent& event, uint32_t index) {
  Op op;
  op.kind = OpKind::empty_cache;
  push(op, event, index);
}

bool is_segment_call(RecordedAction action) {
  return action >= RecordedAction::segment_alloc && action <= RecordedAction::segment_unmap;
}

// Segments went back and no new one came.
bool Compiler::only_released() const {
  if (window_begin_ == program_.segment_calls.size()) return false;
  const RecordedCall::Kind last = program_.segment_calls.back().kind;
  return last == RecordedCall::Kind::segment_free || last == RecordedCall::Kind::segment_unmap;
}

bool is_release(const RecordedCall& call) {
  return call.kind == RecordedCall::Kind::segment_free ||
         call.kind == RecordedCall::Kind::segment_unmap;
}

// Segments went back and then new ones came for a request. It was empty_cache and not the request
// if all of it together would have fitted: the run held as much at another time.
void Compiler::split_off_empty_cache(const RecordedEvent& event, uint32_t index) {
  std::vector<RecordedCall>& calls = program_.segment_calls;
  size_t released = window_begin_;
  while (released < calls.size() && is_release(calls[released])) ++released;
  if (released == window_begin_ || released == calls.size()) return;
  if (recording_.settings.garbage_collection_threshold > 0) return;  // releases without need
  uint64_t held = reserved_;
  for (size_t i = window_begin_; i < calls.size(); ++i) {
    if (is_release(calls[i]) != (i < released)) return;
    held += is_release(calls[i]) ? 0 : calls[i].size;
  }
  if (held > peak_reserved_) return;
  add_empty_cache(event, index);
  close_window_at(released);
}

// The segment calls since the last window belong to the last op.
void Compiler::close_window_at(size_t end) {
  if (window_begin_ == end) return;
  for (size_t i = window_begin_; i < end; ++i) {
    const RecordedCall& call = program_.segment_calls[i];
    reserved_ += is_release(call) ? -call.size : call.size;
  }
  program_.windows.push_back(
      {static_cast<uint32_t>(program_.ops.size() - 1), static_cast<uint32_t>(end)});
  window_begin_ = end;
}

void Compiler::find_peak_reserved() {
  for (const SegmentView& segment : program_.initial) reserved_ += segment.size;
  uint64_t reserved = peak_reserved_ = reserved_;
  for (const RecordedEvent& event : recording_.events) {
    if (!is_segment_call(event.action)) continue;
    const bool more = event.action == RecordedAction::segment_alloc ||
                      event.action == RecordedAction::segment_map;
    reserved += more ? event.size : -event.size;
    if (more) peak_reserved_ = std::max(peak_reserved_, reserved);
  }
}

Program Compiler::compile() {
  find_initial_blocks();
  find_peak_reserved();
  program_.ops.reserve(recording_.events.size() * 2 / 3);
  for (size_t i = 0; i < recording_.events.size(); ++i) {
    const RecordedEvent& event = recording_.events[i];
    const auto index = static_cast<uint32_t>(i);
    if (is_segment_call(event.action)) {
      add_segment_call(event);
      continue;
    }
    // Segment calls precede the alloc or oom that they were made for. If the last of them gave
    // memory back and no oom follows, no request was being served: it was empty_cache.
    if (only_released() && event.action != RecordedAction::oom) {
      add_empty_cache(event, index);
      close_window();
    }
    if (event.action == RecordedAction::alloc) split_off_empty_cache(event, index);
    add(event, index);
    if (event.action == RecordedAction::alloc || event.action == RecordedAction::oom)
      close_window();
  }
  if (window_begin_ < program_.segment_calls.size()) {
    add_empty_cache(recording_.events.back(), static_cast<uint32_t>(recording_.events.size() - 1));
    close_window();
  }
  program_.recorded_peak = peak_reserved_;
  note_program(program_);
  return std::move(program_);
}

}  // namespace

Program compile_program(const Recording& recording) { return Compiler(recording).compile(); }

}  // namespace cufit::memory
