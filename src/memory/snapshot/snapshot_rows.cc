// SPDX-License-Identifier: Apache-2.0
// How each key of a snapshot's dicts reaches its field. A key with None is as good as none; a value
// of another type than the allocator writes is an error, because the next field may be wrong too.
#include <algorithm>

#include "base/format.h"
#include "memory/snapshot/snapshot_builder.h"
#include "memory/snapshot/snapshot_fields.h"

namespace cufit::memory {
namespace {

using Value = formats::PickleValue;
using Kind = Value::Kind;

constexpr size_t k_unknown_keys = 64;

}  // namespace

const char* to_string(Action action) {
  return action == Action::other ? "other" : k_words[static_cast<size_t>(action)].data();
}

const char* to_string(BlockState state) {
  return k_words[static_cast<size_t>(Word::active_allocated) + static_cast<size_t>(state)].data();
}

Error SnapshotBuilder::wrong(std::string_view of, const Value& key, const Value& value) const {
  return fail(Code::malformed,
              format("`{}` of a {} is {}", snapshot_.texts[key.number()], of, describe(value)));
}

void SnapshotBuilder::unknown(const Value& key) {
  if (key.kind != Kind::text || snapshot_.unknown_keys.size() >= k_unknown_keys) return;
  auto& keys = snapshot_.unknown_keys;
  if (std::find(keys.begin(), keys.end(), key.number()) == keys.end()) keys.push_back(key.number());
}

bool SnapshotBuilder::take_frames(uint32_t& number, const Value& value) {
  if (value.kind == Kind::none) return true;
  if (value.kind == Kind::empty_list) number = k_empty_stack;
  if (value.is_object(stack)) number = value.number();
  return value.kind == Kind::empty_list || value.is_object(stack);
}

bool SnapshotBuilder::take_pool(std::optional<PoolId>& field, const Value& value) const {
  if (value.kind == Kind::none) return true;
  if (value.is_object(pool)) field = pools_[value.number()];
  return value.is_object(pool);
}

Result<bool> SnapshotBuilder::set_block(Block& row, Items items) {
  for (size_t i = 0; i < items.size(); i += 2) {
    const Value& value = items[i + 1];
    bool fits = true;
    switch (word_of(items[i])) {
      case Word::address:
      case Word::addr:
        fits = take(row.address, value);
        break;
      case Word::size:
        fits = take(row.size, value);
        break;
      case Word::requested_size:
        fits = take(row.requested_size, value);
        break;
      case Word::frames:
        fits = take_frames(row.stack, value);
        break;
      case Word::state: {
        Word state = word_of(value);
        if (state == Word::active_awaiting_free) state = Word::active_pending_free;
        fits = state >= Word::active_allocated && state <= Word::inactive;
        if (fits)
          row.state = static_cast<BlockState>(static_cast<uint32_t>(state) -
                                              static_cast<uint32_t>(Word::active_allocated));
        break;
      }
      case Word::history:  // 2.0: the newest first
        fits = value.kind == Kind::empty_list || value.is_object(list);
        if (value.is_object(list)) {
          const List& rows = lists_[value.number()];
          if (rows.tag == history && !rows.ranges.empty()) {
            const History& newest = histories_[rows.ranges[0].first];
            row.requested_size = newest.real_size;
            row.stack = newest.stack;
          }
        }
        break;
      default:
        unknown(items[i]);
    }
    if (!fits) return wrong("block", items[i], value);
  }
  return true;
}

Result<bool> SnapshotBuilder::set_history(History& row, Items items) {
  for (size_t i = 0; i < items.size(); i += 2) {
    const Value& value = items[i + 1];
    bool fits = true;
    if (is(items[i], Word::real_size)) fits = take(row.real_size, value);
    if (is(items[i], Word::frames)) fits = take_frames(row.stack, value);
    if (!fits) return wrong("block's history", items[i], value);
  }
  return true;
}

Result<bool> SnapshotBuilder::set_segment(SegmentRow& row, Items items) {
  Segment& segment_row = row.segment;
  for (size_t i = 0; i < items.size(); i += 2) {
    const Value& value = items[i + 1];
    bool fits = true;
    switch (word_of(items[i])) {
      case Word::device:
        fits = take(segment_row.device, value);
        break;
      case Word::address:
        fits = take(segment_row.address, value);
        break;
      case Word::total_size:
        fits = take(segment_row.total_size, value);
        break;
      case Word::allocated_size:
        fits = take(segment_row.allocated_size, value);
        break;
      case Word::active_size:
        fits = take(segment_row.active_size, value);
        break;
      case Word::requested_size:
        fits = take(segment_row.requested_size, value);
        break;
      case Word::stream:
        fits = take_stream(segment_row.stream, value);
        break;
      case Word::segment_type:
        fits = is(value, Word::small) || is(value, Word::large);
        segment_row.is_small = is(value, Word::small);
        break;
      case Word::segment_pool_id:
        fits = take_pool(segment_row.pool, value);
        break;
      case Word::is_expandable:
        fits = take(segment_row.is_expandable, value);
        break;
      case Word::frames:
        fits = take_frames(segment_row.stack, value);
        break;
      case Word::blocks:
        fits = value.kind == Kind::empty_list || value.is_object(list);
        row.blocks = value;
        break;
      default:
        unknown(items[i]);
    }
    if (!fits) return wrong("segment", items[i], value);
  }
  return true;
}

Result<bool> SnapshotBuilder::set_annotation(Annotation& row, Items items) {
  for (size_t i = 0; i < items.size(); i += 2) {
    const Value& value = items[i + 1];
    bool fits = true;
    switch (word_of(items[i])) {
      case Word::name:
        fits = take_text(row.name, value);
        break;
      case Word::stage:
        fits = is(value, Word::start) || is(value, Word::end);
        row.start = is(value, Word::start);
        break;
      case Word::device:
        fits = take(row.device, value);
        break;
      case Word::time_us:
        fits = take(row.time_us, value);
        break;
      default:
        unknown(items[i]);
    }
    if (!fits) return wrong("annotation", items[i], value);
  }
  return true;
}

Result<bool> SnapshotBuilder::set_top(Top& row, Items items) {
  for (size_t i = 0; i < items.size(); i += 2) {
    Value* field = nullptr;
    switch (word_of(items[i])) {
      case Word::segments:
        field = &row.segments;
        break;
      case Word::device_traces:
        field = &row.traces;
        break;
      case Word::host_segments:
        field = &row.host_segments;
        break;
      case Word::host_traces:
        field = &row.host_traces;
        break;
      case Word::allocator_settings:
        field = &row.settings;
        break;
      case Word::external_annotations:
        field = &row.annotations;
        break;
      case Word::cufit_limits:
        field = &row.limits;
        break;
      default:
        unknown(items[i]);
    }
    if (field) *field = items[i + 1];
  }
  return true;
}

}  // namespace cufit::memory
