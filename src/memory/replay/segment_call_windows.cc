// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "memory/replay/trace_compiler.h"

namespace cufit::memory {

void TraceCompiler::add_segment_call(const RecordedEvent& event, uint32_t index) {
  const auto kind = static_cast<RecordedCall::Kind>(static_cast<uint8_t>(event.action) -
                                                    static_cast<uint8_t>(Action::segment_alloc));
  program_.segment_calls.push_back({kind, event.address, event.size});
  program_.call_events.push_back(index);
}

// The calls up to `end` that belong to no op yet were made by empty_cache, at the last of them:
// what the driver did for the request after it comes later.
void TraceCompiler::add_empty_cache(size_t end) {
  const uint32_t index = program_.call_events[end - 1];
  push(OpKind::empty_cache, 0, recording_.events[index], index);
  empties_cache_ = true;
  close_window_at(end);
}

// Segments went back and no new one came.
bool TraceCompiler::only_released() const {
  return window_begin_ != calls_ && is_release(program_.segment_calls[calls_ - 1]);
}

// One caller's releases, which are next to each other and have one stack, from `at` on; whose doing
// they were. Steps over them.
ReleaseOrigin TraceCompiler::pass_caller(size_t& at, size_t end, const RecordedEvent& request) {
  const auto release = [&](size_t call) { return recording_.events[program_.call_events[call]]; };
  const uint32_t stack = release(at).stack;
  ReleaseOrigin by = ReleaseOrigin::unknown;
  for (; at < end && release(at).stack == stack; ++at)
    if (by == ReleaseOrigin::unknown) by = release_origins_.of(at, release(at), request);
  return by;
}

// Segments went back at last, and a request is being served whose alloc or oom is yet to come:
// blocks that waited for other streams complete meanwhile.
bool TraceCompiler::is_under_way(size_t event) {
  for (next_request_ = std::max(next_request_, event); next_request_ < recording_.events.size();
       ++next_request_) {
    const Action action = recording_.events.action(next_request_);
    if (action == Action::alloc || action == Action::oom) break;
    if (action != Action::free_completed && !is_segment_call(action)) return false;
  }
  if (next_request_ == recording_.events.size()) return false;
  if (under_way_.calls == calls_ && under_way_.request == next_request_) return under_way_.answer;
  const auto stack = [&](size_t call) {
    return recording_.events[program_.call_events[call]].stack;
  };
  size_t last = calls_ - 1;
  while (last > window_begin_ && is_release(program_.segment_calls[last - 1]) &&
         stack(last - 1) == stack(last))
    --last;
  const RecordedEvent request = recording_.events[next_request_];
  under_way_ = {calls_, next_request_,
                pass_caller(last, calls_, request) == ReleaseOrigin::request};
  return under_way_.answer;
}

// Stacks may tell that what was given back first, or all of it, was not for this request. Answers
// whose doing the next one was, or the first one if that was the program's.
ReleaseOrigin TraceCompiler::split_by_stack(const RecordedEvent& request, size_t released) {
  size_t emptied = window_begin_;
  for (size_t at = emptied;
       at < released && pass_caller(at, released, request) == ReleaseOrigin::program;)
    emptied = at;
  if (emptied > window_begin_) {
    add_empty_cache(emptied);
    return ReleaseOrigin::program;
  }
  for (size_t at = window_begin_; at < released;)
    if (pass_caller(at, released, request) == ReleaseOrigin::request) return ReleaseOrigin::request;
  return ReleaseOrigin::unknown;
}

// Segments went back and then new ones came for a request, or it failed. Where stacks do not tell,
// it was empty_cache and not the request if all of it together would have fitted: the run held as
// much at another time. Else it was the request where the run is known to have had a limit; where
// it is not, nothing in the recording tells.
void TraceCompiler::split_off_empty_cache(const RecordedEvent& event, uint32_t index) {
  const std::vector<RecordedCall>& calls = program_.segment_calls;
  size_t released = window_begin_;
  while (released < calls_ && is_release(calls[released])) ++released;
  if (released == window_begin_) return;
  if (split_by_stack(event, released) != ReleaseOrigin::unknown) return;
  if (event.action == Action::oom || released == calls_) return;
  if (recording_.settings.garbage_collection_threshold > 0) return;  // releases without need
  uint64_t held = reserved_;
  for (size_t i = window_begin_; i < calls_; ++i) {
    if (is_release(calls[i]) != (i < released)) return;
    held += is_release(calls[i]) ? 0 : calls[i].size;
  }
  if (held <= peak_reserved_) return add_empty_cache(released);
  if (has_failures_) return;
  least_doubtful_ = std::min(least_doubtful_, held);
  push(OpKind::empty_cache, 0, event, index).doubtful = program_.has_doubts = true;
}

// The segment calls since the last window belong to the last op.
void TraceCompiler::close_window_at(size_t end) {
  if (window_begin_ == end) return;
  for (size_t i = window_begin_; i < end; ++i) {
    const RecordedCall& call = program_.segment_calls[i];
    reserved_ += is_release(call) ? -call.size : call.size;
  }
  program_.windows.push_back(
      {static_cast<uint32_t>(program_.ops.size() - 1), static_cast<uint32_t>(end)});
  window_begin_ = end;
}

void TraceCompiler::find_peak_reserved() {
  for (const SegmentView& segment : program_.initial) reserved_ += segment.size;
  uint64_t reserved = peak_reserved_ = reserved_;
  for (const RecordedCall& call : program_.segment_calls) {
    reserved += is_release(call) ? -call.size : call.size;
    if (!is_release(call)) peak_reserved_ = std::max(peak_reserved_, reserved);
  }
}

}  // namespace cufit::memory
