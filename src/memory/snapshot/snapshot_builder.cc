// SPDX-License-Identifier: Apache-2.0
#include "memory/snapshot/snapshot_builder.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::memory {
namespace {

using Kind = formats::PickleValue::Kind;

// What rows may take before the file has to pay. Blocks stand twice in memory at the end, 80 bytes
// for about 60 of the file: this is enough for 6 million of them.
constexpr uint64_t k_head_start = 128u << 20;
constexpr uint64_t k_rows = 1u << 28;  // the memo keeps 28 bits of a row's number

}  // namespace

SnapshotBuilder::SnapshotBuilder(const SnapshotLimits& limits) : limits_(limits) {
  for (std::string_view word : k_words) snapshot_.texts.intern(word);
  snapshot_.contexts.push_back({});
  context_numbers_.emplace(context_key({}), 0);
}

Result<bool> SnapshotBuilder::afford(size_t bytes) {
  kept_bytes_ += bytes;
  if (kept_bytes_ > read_bytes_ + k_head_start) {
    return fail(Code::malformed, "the pickle describes more than a file of its size can hold");
  }
  return true;
}

SnapshotBuilder::Tag SnapshotBuilder::classify(Items items) const {
  if (is(items[0], Word::action)) return event;
  Tag found = dict;
  for (size_t i = 0; i < items.size(); i += 2) {
    if (items[i].kind != Kind::text || items[i].bits >= k_words.size()) continue;
    switch (static_cast<Word>(items[i].bits)) {
      case Word::action:
        return event;
      case Word::segments:
      case Word::device_traces:
        return top;
      case Word::blocks:
      case Word::total_size:
        return segment;
      case Word::stage:
        return annotation;
      case Word::real_size:
        return history;
      case Word::state:
        found = block;
        break;
      case Word::filename:
        if (found == dict) found = frame;
        break;
      default:
        break;
    }
  }
  return found;
}

Result<formats::PickleValue> SnapshotBuilder::create(Tag tag) {
  auto rows = [&](auto& table, size_t bytes) -> Result<Value> {
    CUFIT_TRY(affordable, afford(bytes));
    (void)affordable;
    if (table.size() >= k_rows) return fail(Code::malformed, "too many rows of one kind");
    table.push_back({});
    return Value::object(tag, table.size() - 1);
  };
  switch (tag) {
    case event: {
      if (snapshot_.events.size() >= limits_.events) {
        return fail(Code::unsupported,
                    format("more than {} trace entries; recorded with a smaller `max_entries`, the "
                           "newest of them are enough",
                           limits_.events));
      }
      CUFIT_TRY(affordable, afford(sizeof(TraceEvent)));
      (void)affordable;
      snapshot_.events.push_back({});
      return Value::object(event, snapshot_.events.size() - 1);
    }
    case block:
      return rows(blocks_, sizeof(Block));
    case segment:
      return rows(segments_, sizeof(SegmentRow));
    case annotation:
      return rows(annotations_, sizeof(Annotation));
    case history:
      return rows(histories_, sizeof(History));
    case top:
      return rows(tops_, sizeof(Top));
    default:
      return rows(dicts_, sizeof(Pairs));
  }
}

Result<formats::PickleValue> SnapshotBuilder::set(Value to, Items items) {
  auto done = [&](Result<bool> result) -> Result<Value> {
    if (!result) return result.error();
    return to;
  };
  switch (to.tag) {
    case event:
      return done(set_event(snapshot_.events[to.number()], items));
    case block:
      return done(set_block(blocks_[to.number()], items));
    case segment:
      return done(set_segment(segments_[to.number()], items));
    case annotation:
      return done(set_annotation(annotations_[to.number()], items));
    case history:
      return done(set_history(histories_[to.number()], items));
    case top:
      return done(set_top(tops_[to.number()], items));
    case dict:
      return add_to_dict(to, items);
    case frame:
      return to;  // a frame has its three keys; tools add more
    default:
      return fail(Code::malformed, "keys set on something that is no dict");
  }
}

Result<formats::PickleValue> SnapshotBuilder::set_items(Value to, Items items) {
  if (to.kind != Kind::empty_dict) return set(to, items);
  Tag tag = classify(items);
  if (tag == event) {  // nearly all there is; the shortest way
    CUFIT_TRY(made, create(event));
    CUFIT_TRY(done, set_event(snapshot_.events.back(), items));
    (void)done;
    return made;
  }
  if (tag == frame) {
    Frame row;
    size_t found = 0;
    for (size_t i = 0; i < items.size(); i += 2) {
      uint32_t* field = is(items[i], Word::name)       ? &row.name
                        : is(items[i], Word::filename) ? &row.filename
                        : is(items[i], Word::line)     ? &row.line
                                                       : nullptr;
      if (!field) continue;
      bool fits = field == &row.line ? items[i + 1].as_unsigned().has_value()
                                     : items[i + 1].kind == Kind::text;
      if (!fits && field != &row.line) return wrong("frame", items[i], items[i + 1]);
      if (fits) *field = items[i + 1].number();
      ++found;
    }
    if (found == 3) {
      CUFIT_TRY(affordable, afford(items.size()));  // equal frames are kept once
      (void)affordable;
      return Value::object(frame, snapshot_.stacks.intern_frame(row));
    }
    tag = dict;  // protocol 0 sets keys one by one; settle() looks again
  }
  CUFIT_TRY(made, create(tag));
  return set(made, items);
}

// A dict of unknown kind keeps its pairs, until a key says what it is.
Result<formats::PickleValue> SnapshotBuilder::add_to_dict(Value to, Items items) {
  CUFIT_TRY(affordable, afford(items.size() * sizeof(Value)));
  (void)affordable;
  Pairs& pairs = dicts_[to.number()];
  for (size_t i = 0; i < items.size(); i += 2) pairs.push_back({items[i], items[i + 1]});
  Tag tag = classify(items);
  if (tag == dict || tag == frame) return to;
  std::vector<Value> all;
  for (const auto& [key, value] : pairs) all.push_back(key), all.push_back(value);
  pairs = {};
  CUFIT_TRY(made, create(tag));
  return set(made, all);
}

// What a container is once it goes into another one.
formats::PickleValue SnapshotBuilder::settle(const Value& value) {
  if (!value.is_object(dict)) return value;
  const Pairs& pairs = dicts_[value.number()];
  std::vector<Value> all;
  if (pairs.size() > 16) return value;  // no frame
  for (const auto& [key, item] : pairs) all.push_back(key), all.push_back(item);
  if (all.empty() || classify(all) != frame) return value;
  Result<Value> made = set_items({Kind::empty_dict, 0, 0, 0}, all);
  return made && made->is_object(frame) ? *made : value;
}

Result<formats::PickleValue> SnapshotBuilder::append(Value to, Items items) {
  if (to.is_object(stack) || settle(items[0]).is_object(frame)) return append_frames(to, items);
  if (to.kind == Kind::empty_list) {
    if (items.size() == 2 && items[0].as_unsigned() && items[1].as_unsigned()) {
      return make_tuple(items);  // a pool id that went through JSON
    }
    CUFIT_TRY(affordable, afford(sizeof(List) + 16));
    (void)affordable;
    to = Value::object(list, add_list());
  }
  if (!to.is_object(list)) {
    if (to.is_object(pool)) return Value::object(other, 0);  // a list of numbers after all
    if (to.is_object(other)) return to;
    return fail(Code::malformed, "items appended to something that is no list");
  }
  // Not kept as a reference: an empty list among the items makes the table of lists grow.
  List into = std::move(lists_[to.number()]);
  for (size_t i = 0; i < items.size();) {
    const size_t run = append_run(into, items.subspan(i));
    i += run;
    if (run > 0) continue;
    CUFIT_TRY(added, append_item(into, items[i++]));
    (void)added;
  }
  lists_[to.number()] = std::move(into);
  return to;
}

// How many of the items are the trace entries that follow those of the list, with nothing missing.
size_t SnapshotBuilder::append_run(List& to, Items items) {
  if (to.tag != event || to.ranges.empty()) return 0;
  const uint64_t next = uint64_t{to.ranges.back().first} + to.ranges.back().second;
  size_t count = 0;
  for (; count < items.size(); ++count) {
    const Value& item = items[count];
    if (!item.is_object(event) || item.bits != next + count) break;
    const TraceEvent& row = snapshot_.events[item.bits];
    if (row.size == k_absent || row.address == k_absent) break;
  }
  to.ranges.back().second += static_cast<uint32_t>(count);
  return count;
}

Result<bool> SnapshotBuilder::append_item(List& to, const Value& item) {
  Value value = settle(item);
  Tag tag = value.kind == Kind::object ? static_cast<Tag>(value.tag) : other;
  uint32_t number = value.number();
  if (value.kind == Kind::empty_list) {
    CUFIT_TRY(affordable, afford(sizeof(List) + 16));
    (void)affordable;
    tag = list;
    number = add_list();
  }
  if (tag == event) {
    const TraceEvent& row = snapshot_.events[number];
    bool needs_place = row.action <= Action::segment_unmap;
    if (row.size == k_absent && (needs_place || row.action == Action::oom)) {
      return fail(Code::malformed, format("a trace entry `{}` has no size", to_string(row.action)));
    }
    if (row.address == k_absent && needs_place) {
      return fail(Code::malformed, format("a trace entry `{}` has no addr", to_string(row.action)));
    }
  }
  if (to.ranges.empty()) {
    to.tag = tag;
  } else if (to.tag != tag) {
    to.tag = other;
  }
  if (to.tag != other && !to.ranges.empty() &&
      to.ranges.back().first + to.ranges.back().second == number) {
    ++to.ranges.back().second;
    return true;
  }
  if (to.tag == other && !to.ranges.empty()) {  // nobody reads these; their number is enough
    ++to.ranges.back().second;
    return true;
  }
  to.ranges.push_back({number, 1});
  return afford(sizeof to.ranges[0]);
}

uint32_t SnapshotBuilder::add_list() {
  lists_.emplace_back();
  return static_cast<uint32_t>(lists_.size() - 1);
}

Result<formats::PickleValue> SnapshotBuilder::append_frames(Value to, Items items) {
  scratch_.clear();
  if (to.is_object(stack)) {
    std::span<const uint32_t> before = snapshot_.stacks[to.number()];
    scratch_.assign(before.begin(), before.end());
  } else if (to.kind != Kind::empty_list) {
    return fail(Code::malformed, "frames among other items of a list");
  }
  for (const Value& item : items) {
    Value value = settle(item);
    if (!value.is_object(frame)) return fail(Code::malformed, "a stack holds more than frames");
    scratch_.push_back(value.number());
  }
  if (scratch_.size() > Stacks::k_depth) {
    return fail(Code::malformed, format("a stack of {} frames", scratch_.size()));
  }
  uint64_t before = snapshot_.stacks.frames_kept();
  uint32_t number = snapshot_.stacks.intern(scratch_);
  CUFIT_TRY(affordable, afford((snapshot_.stacks.frames_kept() - before) * sizeof(uint32_t)));
  (void)affordable;
  return Value::object(stack, number);
}

// A stack of whole frames, which nothing changes any more; a dict may become another one.
bool SnapshotBuilder::is_for_good(Items items, const Value& made) {
  return made.is_object(stack) &&
         std::all_of(items.begin(), items.end(), [](const Value& v) { return v.is_object(frame); });
}

Result<formats::PickleValue> SnapshotBuilder::make_tuple(Items items) {
  if (items.size() != 2) return Value::object(other, 0);
  auto first = items[0].as_unsigned(), second = items[1].as_unsigned();
  if (!first || !second) return Value::object(other, 0);
  PoolId id{*first, *second};
  // Neighbours are in the same pool, so few repeat.
  if (!pools_.empty() && pools_.back() == id) return Value::object(pool, pools_.size() - 1);
  CUFIT_TRY(affordable, afford(sizeof id));
  (void)affordable;
  pools_.push_back(id);
  return Value::object(pool, pools_.size() - 1);
}

}  // namespace cufit::memory
