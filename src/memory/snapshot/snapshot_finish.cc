// SPDX-License-Identifier: Apache-2.0
// After the last byte of the pickle: rows are put together, and what is no snapshot is described.
#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>

#include "base/format.h"
#include "base/number.h"
#include "memory/snapshot/snapshot_builder.h"

namespace cufit::memory {
namespace {

using Value = formats::PickleValue;
using Kind = Value::Kind;

template <class Row>
void sort_by_address(std::vector<Row>& rows) {
  auto before = [](const Row& a, const Row& b) { return a.address < b.address; };
  if (!std::is_sorted(rows.begin(), rows.end(), before)) {
    std::stable_sort(rows.begin(), rows.end(), before);
  }
}

// What torch's symbolizers write for C++: no file, a source of C or C++, or the library it lies in.
bool is_native_file(std::string_view file) {
  if (file.empty() || file == "??") return true;
  file = file.substr(file.find_last_of('/') + 1);
  if (file.find(".so.") != std::string_view::npos) return true;
  // The interpreter itself where it is linked statically, as conda's and uv's are: python3.12.
  if (file.substr(0, 6) == "python" &&
      file.find_first_not_of("0123456789.", 6) == std::string_view::npos)
    return true;
  constexpr std::string_view k_ends[] = {".cpp", ".cc",  ".cxx", ".c",   ".cu",  ".cuh", ".h",
                                         ".hpp", ".hxx", ".inl", ".inc", ".tcc", ".S",   ".so"};
  return std::any_of(std::begin(k_ends), std::end(k_ends),
                     [&](std::string_view end) { return file.ends_with(end); });
}

}  // namespace

Result<Snapshot> SnapshotBuilder::finish(const Value& whole) {
  Value value = settle(whole);
  Top parts;
  if (value.is_object(top)) {
    parts = tops_[value.number()];
  } else if (value.is_object(list) && lists_[value.number()].tag == segment) {
    parts.segments = value;
    snapshot_.only_segments = true;
  } else {
    return no_snapshot(value);
  }
  CUFIT_TRY(segments, take_segments(parts.segments));
  CUFIT_TRY(traces, take_traces(parts.traces));
  CUFIT_TRY(host_segments, take_segments(parts.host_segments));
  CUFIT_TRY(host_traces, take_traces(parts.host_traces));
  snapshot_.segments = std::move(segments);
  snapshot_.traces = std::move(traces);
  snapshot_.host_segments = std::move(host_segments);
  snapshot_.host_traces = std::move(host_traces);
  take_annotations(parts.annotations);
  take_settings(parts.settings);
  take_limits(parts.limits);
  CUFIT_TRY(python, find_python_stacks());
  (void)python;
  return std::move(snapshot_);
}

// Torch puts Python frames between those of C++, innermost first; where the interpreter runs
// several Python functions in one frame of its own, the rest follow at the end, still in their
// order.
Result<bool> SnapshotBuilder::find_python_stacks() {
  Stacks& stacks = snapshot_.stacks;
  std::vector<bool> native;
  bool any = false;
  for (uint32_t i = 0; i < stacks.frame_count(); ++i) {
    native.push_back(is_native_file(snapshot_.text(stacks.frame(i).filename)));
    any = any || native.back();
  }
  if (!any) return true;
  const auto recorded = static_cast<uint32_t>(stacks.size());
  CUFIT_TRY(affordable, afford(recorded * sizeof(uint32_t)));
  (void)affordable;
  for (uint32_t i = 0; i < recorded; ++i) {
    scratch_.clear();
    const std::span<const uint32_t> frames = stacks[i];
    std::copy_if(frames.begin(), frames.end(), std::back_inserter(scratch_),
                 [&](uint32_t number) { return !native[number]; });
    const uint64_t before = stacks.frames_kept();
    snapshot_.python_stacks.push_back(scratch_.size() == frames.size() ? i
                                                                       : stacks.intern(scratch_));
    CUFIT_TRY(kept, afford((stacks.frames_kept() - before) * sizeof(uint32_t)));
    (void)kept;
  }
  return true;
}

Result<std::vector<Segment>> SnapshotBuilder::take_segments(const Value& value) {
  std::vector<Segment> taken;
  if (value.kind == Kind::none || value.kind == Kind::empty_list) return taken;
  if (!value.is_object(list) || lists_[value.number()].tag != segment) {
    return fail(Code::malformed, format("`segments` is {}", describe(value)));
  }
  for (const auto& [first, count] : lists_[value.number()].ranges) {
    CUFIT_TRY(affordable, afford(count * sizeof(Segment)));
    (void)affordable;
    for (uint32_t i = first; i < first + count; ++i) {
      const SegmentRow& row = segments_[i];
      if (row.segment.address == k_absent || row.segment.total_size == k_absent) {
        return fail(Code::malformed, format("segment {} has no address or no total_size", i));
      }
      taken.push_back(row.segment);
      CUFIT_TRY(blocks, take_blocks(row.segment, row.blocks));
      taken.back().blocks = std::move(blocks);
    }
  }
  sort_by_address(taken);
  return taken;
}

Result<std::vector<Block>> SnapshotBuilder::take_blocks(const Segment& of, const Value& value) {
  std::vector<Block> taken;
  if (value.kind == Kind::none || value.kind == Kind::empty_list) return taken;
  const List& rows = lists_[value.number()];
  if (rows.tag != block) {
    return fail(Code::malformed, format("`blocks` of a segment is {}", describe(value)));
  }
  uint64_t next = of.address;
  for (const auto& [first, count] : rows.ranges) {
    CUFIT_TRY(affordable, afford(count * sizeof(Block)));
    (void)affordable;
    for (uint32_t i = first; i < first + count; ++i) {
      taken.push_back(blocks_[i]);
      Block& row = taken.back();
      if (row.size == k_absent) return fail(Code::malformed, "a block has no size");
      if (row.address == k_absent) row.address = next;  // 2.0 writes the sizes in order
      next = row.address + row.size;
    }
  }
  sort_by_address(taken);
  return taken;
}

Result<std::vector<Trace>> SnapshotBuilder::take_traces(const Value& value) {
  std::vector<Trace> taken;
  if (value.kind == Kind::none || value.kind == Kind::empty_list) return taken;
  if (!value.is_object(list) || lists_[value.number()].tag != list) {
    return fail(Code::malformed,
                format("`device_traces` is {}, not one list per device", describe(value)));
  }
  const List devices = lists_[value.number()];
  for (const auto& [first, count] : devices.ranges) {
    for (uint32_t i = first; i < first + count; ++i) {
      const List& entries = lists_[i];
      if (!entries.ranges.empty() && entries.tag != event) {
        return fail(Code::malformed, format("the trace of device {} is {}", taken.size(),
                                            describe(Value::object(list, i))));
      }
      CUFIT_TRY(trace, take_trace(entries));
      taken.push_back(trace);
    }
  }
  return taken;
}

// One range in every file that the allocator wrote; others are copied to the end.
Result<Trace> SnapshotBuilder::take_trace(const List& entries) {
  if (entries.ranges.empty()) return Trace{};
  if (entries.ranges.size() == 1) {
    return Trace{entries.ranges[0].first, entries.ranges[0].second};
  }
  Trace trace{snapshot_.events.size(), 0};
  for (const auto& [first, count] : entries.ranges) {
    CUFIT_TRY(affordable, afford(count * sizeof(TraceEvent)));
    (void)affordable;
    for (uint32_t i = first; i < first + count; ++i) {
      TraceEvent row = snapshot_.events[i];
      snapshot_.events.push_back(row);
    }
    trace.count += count;
  }
  return trace;
}

void SnapshotBuilder::take_annotations(const Value& value) {
  if (!value.is_object(list) || lists_[value.number()].tag != annotation) return;
  for (const auto& [first, count] : lists_[value.number()].ranges) {
    for (uint32_t i = first; i < first + count; ++i) {
      snapshot_.annotations.push_back(annotations_[i]);
    }
  }
}

void SnapshotBuilder::take_settings(const Value& value) {
  if (!value.is_object(dict)) return;
  AllocatorSettings& settings = snapshot_.settings.emplace();
  auto boolean = [](const Value& item) { return item.kind == Kind::boolean; };
  for (const auto& [key, item] : dicts_[value.number()]) {
    if (key.kind != Kind::text) continue;
    if (is(key, Word::conf) && item.kind == Kind::text) {
      settings.conf = std::string(snapshot_.texts[item.number()]);
    } else if (is(key, Word::max_split_size) && item.kind == Kind::integer) {
      // SIZE_MAX, which means no limit, is written as -1.
      settings.max_split_size = item.as_unsigned().value_or(k_absent);
    } else if (is(key, Word::garbage_collection_threshold) && item.as_real()) {
      settings.garbage_collection_threshold = *item.as_real();
    } else if (is(key, Word::expandable_segments) && boolean(item)) {
      settings.expandable_segments = item.bits != 0;
    } else if (is(key, Word::release_lock_on_cudamalloc) && boolean(item)) {
      settings.release_lock_on_cudamalloc = item.bits != 0;
    } else if (is(key, Word::graph_capture_record_stream_reuse) && boolean(item)) {
      settings.graph_capture_record_stream_reuse = item.bits != 0;
    } else if (is(key, Word::roundup_power2_divisions) && item.is_object(dict)) {
      for (const auto& [megabytes, divisions] : dicts_[item.number()]) {
        if (megabytes.kind != Kind::text || !divisions.as_unsigned()) continue;
        settings.roundup_power2_divisions.emplace_back(snapshot_.texts[megabytes.number()],
                                                       *divisions.as_unsigned());
      }
    } else {
      settings.rest.emplace_back(snapshot_.texts[key.number()], plain(item));
    }
  }
}

// What `cufit mem record` writes beside the trace: bytes by device, whose numbers are texts.
void SnapshotBuilder::take_limits(const Value& value) {
  if (!value.is_object(dict)) return;
  for (const auto& [key, item] : dicts_[value.number()]) {
    if (key.kind != Kind::text || !item.as_unsigned()) continue;
    const std::optional<uint64_t> device = parse_uint(snapshot_.texts[key.number()]);
    if (device && *device < snapshot_.traces.size() && *item.as_unsigned() > 0)
      snapshot_.process_limits.emplace(static_cast<uint32_t>(*device), *item.as_unsigned());
  }
}

std::string SnapshotBuilder::plain(const Value& value) const {
  switch (value.kind) {
    case Kind::boolean:
      return value.bits ? "True" : "False";
    case Kind::integer:
      return format("{}", static_cast<int64_t>(value.bits));
    case Kind::unsigned_:
      return format("{}", value.bits);
    case Kind::real:
      return format("{}", *value.as_real());
    case Kind::text:
      return std::string(snapshot_.texts[value.number()]);
    default:
      return formats::to_string(value.kind);
  }
}

std::string SnapshotBuilder::describe(const Value& value) const {
  if (value.kind == Kind::text) {
    std::string_view text = snapshot_.texts[value.number()];
    bool shown = text.size() <= 40 &&
                 std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f; });
    return shown ? format("the text `{}`", text) : format("a text of {} bytes", text.size());
  }
  if (value.kind == Kind::integer) return format("the number {}", plain(value));
  if (value.kind == Kind::huge) return "a number of more than 64 bits";
  if (value.kind != Kind::object) return formats::to_string(value.kind);
  switch (value.tag) {
    case frame:
      return "a frame";
    case stack:
      return "a list of frames";
    case event:
      return "a trace entry";
    case list: {
      static constexpr const char* k_of[] = {"frames",      "stacks",    "trace entries",  "lists",
                                             "blocks",      "segments",  "annotations",    "tuples",
                                             "other dicts", "snapshots", "history entries"};
      const List& items = lists_[value.number()];
      uint64_t count = 0;
      for (const auto& range : items.ranges) count += range.second;
      return format("a list of {} {}", count,
                    items.tag == other ? "other values" : k_of[items.tag]);
    }
    case dict: {
      std::string keys;
      size_t shown = 0;
      for (const auto& pair : dicts_[value.number()]) {
        if (pair.first.kind != Kind::text || shown == 5) continue;
        keys += format("{}{}", shown++ ? ", " : "", describe(pair.first).substr(9));
      }
      return format("a dict of {} keys ({})", dicts_[value.number()].size(), keys);
    }
    case block:
      return "a block";
    case segment:
      return "a segment";
    case top:
      return "a snapshot";
    default:
      return "a tuple or another container";
  }
}

Error SnapshotBuilder::no_snapshot(const Value& whole) const {
  return fail(Code::malformed,
              format("no PyTorch memory snapshot: expected a dict with `segments` and "
                     "`device_traces` (torch.cuda.memory._dump_snapshot), found {}",
                     describe(whole)));
}

}  // namespace cufit::memory
