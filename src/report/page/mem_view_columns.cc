// SPDX-License-Identifier: Apache-2.0
#include "report/page/mem_view_columns.h"

#include <algorithm>
#include <unordered_map>

#include "base/format.h"
#include "report/terminal/width.h"
#include "report/json/json_value.h"

namespace cufit::report {
namespace {

using analysis::Lifetime;
using analysis::View;
using memory::Snapshot;
using Form = ColumnChunk::Values;

void add_steps(ColumnChunk& chunk, const std::string& name, const std::string& suffix,
               const analysis::StepSeries& series) {
  chunk.add(name + "_event" + suffix, series.events, Form::differences);
  chunk.add(name + "_bytes" + suffix, series.bytes, Form::differences);
}

void add_overview(ColumnChunk& chunk, const View& view) {
  for (size_t i = 0; i < view.by_kind.levels.size(); ++i) {
    const analysis::Level& level = view.by_kind.levels[i];
    const std::string number = std::to_string(i);
    chunk.add("max" + number, level.max, Form::differences);
    chunk.add("min" + number, level.min, Form::differences);
    chunk.add("at" + number, level.at, Form::differences);
  }
  chunk.add("kind_parts", view.by_kind.parts);
  add_steps(chunk, "reserved", "", view.reserved);
  for (size_t i = 0; i < view.what_ifs.size(); ++i)
    add_steps(chunk, "whatif", std::to_string(i), view.what_ifs[i].reserved);
  chunk.add("step_begin", view.steps.begins, Form::differences);
}

// Length of a life as one number: 0 never ends, else one more than the events between.
uint32_t length(uint32_t from, uint32_t to) {
  return to == analysis::k_never || to < from ? 0 : to - from + 1;
}

// The page's count of stacks: 0 where none was recorded, then those that rows have, in order of
// first use.
class StackNumbers {
 public:
  uint32_t number(uint32_t stack) {
    if (stack == memory::k_no_stack) return 0;
    const auto [at, is_new] = numbers_.try_emplace(stack, static_cast<uint32_t>(used_.size() + 1));
    if (is_new) used_.push_back(stack);
    return at->second;
  }
  const std::vector<uint32_t>& used() const { return used_; }

 private:
  std::unordered_map<uint32_t, uint32_t> numbers_;
  std::vector<uint32_t> used_;
};

void add_rows(ColumnChunk& chunk, const View& view, StackNumbers& stacks) {
  const std::vector<Lifetime>& rows = view.lifetimes.rows;
  std::vector<uint64_t> address, size, requested;
  std::vector<uint32_t> alloc, held, waits, stack;
  for (const Lifetime& row : rows) {
    const uint32_t from = row.alloc_event == analysis::k_before ? 0 : row.alloc_event;
    address.push_back(row.address);
    size.push_back(row.block_bytes);
    requested.push_back(row.requested_bytes);
    alloc.push_back(from);
    held.push_back(length(from, row.free_requested));
    waits.push_back(held.back() == 0 ? 0 : length(row.free_requested, row.free_completed));
    stack.push_back(stacks.number(row.stack));
  }
  chunk.add("address", address);
  chunk.add("size", size);
  chunk.add("requested", requested);
  chunk.add("alloc", alloc, Form::differences);
  chunk.add("held", held);
  chunk.add("waits", waits);
  chunk.add("stack", stack);
  chunk.add("kind", view.kinds.of_row);
  chunk.add("stack_group", view.stack_groups.of_row);
  chunk.add("stack_parts", view.by_stack.parts);
}

void add_segments(ColumnChunk& chunk, const View& view, MemViewColumns& out) {
  std::vector<uint64_t> address, size;
  std::vector<uint32_t> from, to, pool, stream;
  std::vector<uint8_t> flags;
  std::vector<uint64_t> streams;
  for (const analysis::SegmentRange& range : view.segments) {
    const bool initial = range.from == analysis::k_before;
    out.initial_segments += initial ? 1 : 0;
    address.push_back(range.address);
    size.push_back(range.size);
    from.push_back(initial ? 0 : range.from);
    to.push_back(range.to);
    pool.push_back(range.pool);
    auto found = std::find(streams.begin(), streams.end(), range.stream);
    stream.push_back(static_cast<uint32_t>(found - streams.begin()));
    if (found == streams.end()) streams.push_back(range.stream);
    flags.push_back(static_cast<uint8_t>((range.is_small ? 1 : 0) + (range.is_expandable ? 2 : 0)));
  }
  chunk.add("segment_address", address);
  chunk.add("segment_size", size);
  chunk.add("segment_from", from, Form::differences);
  chunk.add("segment_to", to);
  chunk.add("segment_pool", pool);
  chunk.add("segment_stream", stream);
  chunk.add("segment_flags", flags);
  for (const uint64_t value : streams)
    out.streams.push_back(value == 0 ? "0" : format("0x{:x}", value));
}

// Microseconds since the first event; no values where an event has no time.
void add_times(ColumnChunk& chunk, const View& view, const Snapshot& snapshot) {
  const memory::Trace& trace = snapshot.traces[view.device];
  std::vector<uint64_t> times;
  uint64_t start = 0;
  for (size_t i = 0; i < trace.count; ++i) {
    const uint64_t time = snapshot.events[trace.first + i].time_us;
    if (time == memory::k_absent) {
      times.clear();
      break;
    }
    if (i == 0) start = time;
    times.push_back(time > start ? time - start : 0);
  }
  chunk.add("time", times, Form::differences);
}

class TextNumbers {
 public:
  explicit TextNumbers(const Snapshot& snapshot) : snapshot_(snapshot) {}
  uint32_t number(uint32_t text) {
    const auto [at, is_new] = numbers_.try_emplace(text, static_cast<uint32_t>(texts_.size()));
    if (is_new) texts_.push_back(printable(snapshot_.text(text)));
    return at->second;
  }
  std::string json() const { return texts_.dump(); }

 private:
  const Snapshot& snapshot_;
  std::unordered_map<uint32_t, uint32_t> numbers_;
  Json texts_ = Json::array();
};

void add_stacks(ColumnChunk& chunk, const Snapshot& snapshot, const StackNumbers& stacks) {
  TextNumbers texts(snapshot);
  std::vector<uint32_t> begin = {0}, stack_frame, name, file, line;
  std::unordered_map<uint32_t, uint32_t> frames;
  begin.push_back(0);  // stack 0 has no frames
  for (const uint32_t stack : stacks.used()) {
    for (const uint32_t frame : snapshot.stacks[stack]) {
      const auto [at, is_new] = frames.try_emplace(frame, static_cast<uint32_t>(name.size()));
      if (is_new) {
        const memory::Frame& row = snapshot.stacks.frame(frame);
        name.push_back(texts.number(row.name));
        file.push_back(texts.number(row.filename));
        line.push_back(row.line);
      }
      stack_frame.push_back(at->second);
    }
    begin.push_back(static_cast<uint32_t>(stack_frame.size()));
  }
  chunk.add("stack_begin", begin, Form::differences);
  chunk.add("stack_frame", stack_frame);
  chunk.add("frame_name", name);
  chunk.add("frame_file", file);
  chunk.add("frame_line", line);
  chunk.add_text("texts", texts.json());
}

}  // namespace

MemViewColumns mem_view_columns(const View& view, const Snapshot& snapshot) {
  MemViewColumns out;
  add_overview(out.overview, view);
  StackNumbers stacks;
  add_rows(out.detail, view, stacks);
  add_segments(out.detail, view, out);
  add_times(out.detail, view, snapshot);
  for (const uint32_t stack : view.stack_groups.stacks)
    out.stack_groups.push_back(stacks.number(stack));
  add_stacks(out.stacks, snapshot, stacks);
  return out;
}

}  // namespace cufit::report
