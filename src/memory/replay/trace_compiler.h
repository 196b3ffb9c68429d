// SPDX-License-Identifier: Apache-2.0
// How replay_program.cc makes a Program of a recording; the calls of segments and what they were made for
// are in segment_call_windows.cc. Used by these two alone.
#pragma once

#include "memory/replay/address_map.h"
#include "memory/replay/release_origin.h"
#include "memory/replay/replay_program.h"

namespace cufit::memory {

inline bool is_segment_call(Action action) {
  return action >= Action::segment_alloc && action <= Action::segment_unmap;
}

inline bool is_release(const RecordedCall& call) {
  return call.kind == RecordedCall::Kind::segment_free ||
         call.kind == RecordedCall::Kind::segment_unmap;
}

class TraceCompiler {
 public:
  explicit TraceCompiler(const Recording& recording)
      : recording_(recording), release_origins_(recording) {}
  Program compile();

 private:
  void find_initial_blocks();
  void add(const RecordedEvent& event, uint32_t index);
  void add_malloc(const RecordedEvent& event, uint32_t index);
  void add_free(const RecordedEvent& event, uint32_t index);
  bool add_whole_free(const RecordedEvent& event, uint32_t index);
  void add_segment_call(const RecordedEvent& event, uint32_t index);
  void add_empty_cache(size_t end);
  bool only_released() const;
  bool is_under_way(size_t event);
  ReleaseOrigin pass_caller(size_t& at, size_t end, const RecordedEvent& request);
  void find_peak_reserved();
  void split_off_empty_cache(const RecordedEvent& event, uint32_t index);
  ReleaseOrigin split_by_stack(const RecordedEvent& request, size_t released);
  void close_window() { close_window_at(calls_); }
  void close_window_at(size_t end);
  Op& push(OpKind kind, uint32_t slot, const RecordedEvent& event, uint32_t index);
  uint32_t take_slot();
  uint16_t stream_of(uint64_t value);
  uint16_t pool_of(uint32_t pool);

  const Recording& recording_;
  Program program_;
  ReleaseOrigins release_origins_;
  AddressMap live_;  // slot of the allocation; the mark says that free_requested was seen
  std::vector<uint32_t> free_slots_;
  size_t calls_ = 0;  // of segment_calls, so far
  struct UnderWay {   // what is_under_way() found
    size_t calls = 0, request = 0;
    bool answer = false;
  };
  UnderWay under_way_;
  size_t next_request_ = 0;  // of the events, for is_under_way()
  size_t window_begin_ = 0;  // the first of them that belongs to no op yet
  uint64_t reserved_ = 0;    // before them
  uint64_t peak_reserved_ = 0;
  bool has_failures_ = false;             // it ran out of memory
  bool empties_cache_ = false;            // certainly
  uint64_t least_doubtful_ = UINT64_MAX;  // bytes that would have been held, of Op::doubtful
  uint64_t last_stream_ = 0;
  uint16_t last_index_ = UINT16_MAX;
};

}  // namespace cufit::memory
