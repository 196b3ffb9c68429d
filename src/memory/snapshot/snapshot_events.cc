// SPDX-License-Identifier: Apache-2.0
// Entries of traces: nearly all that a snapshot holds, so this is where reading spends its time.
#include <algorithm>

#include "base/format.h"
#include "memory/snapshot/snapshot_builder.h"
#include "memory/snapshot/snapshot_fields.h"

namespace cufit::memory {

using Value = formats::PickleValue;
using Kind = Value::Kind;

Result<bool> SnapshotBuilder::set_action(TraceEvent& row, EventContext& context,
                                         const Value& value) {
  if (value.kind != Kind::text) return fail(Code::malformed, "an `action` that is no text");
  if (value.bits <= static_cast<uint64_t>(Word::annotate)) {
    row.action = static_cast<Action>(value.bits);
  } else {
    row.action = Action::other;
    context.action_name = value.number();
  }
  return true;
}

Result<bool> SnapshotBuilder::set_event(TraceEvent& row, Items items) {
  EventContext context = snapshot_.contexts[row.context];
  for (size_t i = 0; i < items.size(); i += 2) {
    const Value& value = items[i + 1];
    bool fits = true;
    switch (word_of(items[i])) {
      case Word::action: {
        CUFIT_TRY(set, set_action(row, context, value));
        fits = set;
        break;
      }
      case Word::addr:
      case Word::device_free:
        fits = take(row.address, value);
        break;
      case Word::size:
        fits = take(row.size, value);
        break;
      case Word::time_us:
        fits = take(row.time_us, value);
        break;
      case Word::stream:
        fits = take_stream(context.stream, value);
        break;
      case Word::frames:
        fits = take_frames(row.stack, value);
        break;
      case Word::compile_context:
        fits = take_text(context.compile_context, value);
        break;
      case Word::user_metadata:
        fits = take_text(context.user_metadata, value);
        break;
      case Word::category:
        fits = take_text(context.category, value);
        break;
      case Word::pool_id:
      case Word::segment_pool_id:
        fits = take_pool(context.pool, value);
        break;
      default:
        unknown(items[i]);
    }
    if (!fits) return wrong("trace entry", items[i], value);
  }
  return put_context(row, context);
}

std::string SnapshotBuilder::context_key(const EventContext& context) {
  const PoolId id = context.pool.value_or(PoolId{k_absent, k_absent});
  const uint64_t fields[] = {
      context.stream,
      id.first,
      id.second,
      uint64_t{context.compile_context} << 32 | context.user_metadata,
      uint64_t{context.category} << 32 | context.action_name,
  };
  return std::string(reinterpret_cast<const char*>(fields), sizeof fields);
}

Result<bool> SnapshotBuilder::put_context(TraceEvent& row, const EventContext& context) {
  if (!(context == snapshot_.contexts[last_context_])) {
    auto [at, added] = context_numbers_.emplace(context_key(context),
                                                static_cast<uint32_t>(snapshot_.contexts.size()));
    if (added) {
      if (snapshot_.contexts.size() >= 1u << 24) {
        return fail(Code::malformed, "more than 16 million different streams and annotations");
      }
      snapshot_.contexts.push_back(context);
      CUFIT_TRY(affordable, afford(4 * sizeof context));  // the key and its node as well
      (void)affordable;
    }
    last_context_ = at->second;
  }
  row.context = last_context_;
  return true;
}

constexpr size_t k_missing = SIZE_MAX;

// Taken where the entry has the keys of every entry that is not an oom, each once.
bool SnapshotBuilder::row_keys(Items keys) {
  row_keys_.assign(keys.begin(), keys.end());
  row_shared_.clear();
  row_shared_known_ = false;
  row_action_ = row_address_ = row_size_ = row_time_ = row_frames_ = k_missing;
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t j = 0; j < i; ++j)
      if (keys[j].bits == keys[i].bits) return false;
    switch (word_of(keys[i])) {
      case Word::action:
        row_action_ = i;
        break;
      case Word::addr:
        row_address_ = i;
        break;
      case Word::size:
        row_size_ = i;
        break;
      case Word::time_us:
        row_time_ = i;
        break;
      case Word::frames:
        row_frames_ = i;
        break;
      case Word::device_free:
        return false;
      default:
        row_shared_.push_back({i, {}});
    }
  }
  return row_action_ != k_missing && row_address_ != k_missing && row_size_ != k_missing;
}

// The short way for a row that has what nearly all have; any other goes the way of all dicts.
Result<Value> SnapshotBuilder::set_row(Items values) {
  const auto is_number = [](const Value& value) {
    return value.kind == Kind::integer && static_cast<int64_t>(value.bits) >= 0;
  };
  const Value& action = values[row_action_];
  const Value& address = values[row_address_];
  const Value& size = values[row_size_];
  const Value none;
  const Value& time = row_time_ == k_missing ? none : values[row_time_];
  const Value& frames = row_frames_ == k_missing ? none : values[row_frames_];
  bool usual =
      row_shared_known_ && action.kind == Kind::text &&
      action.bits <= static_cast<uint64_t>(Word::annotate) && is_number(address) &&
      is_number(size) && (time.kind == Kind::none || is_number(time)) &&
      (frames.kind == Kind::none || frames.kind == Kind::empty_list || frames.is_object(stack));
  for (const Shared& shared : row_shared_) {
    const Value& value = values[shared.at];
    usual = usual && value.kind == shared.last.kind && value.bits == shared.last.bits &&
            value.tag == shared.last.tag;
  }
  if (usual) {
    CUFIT_TRY(made, create(event));
    TraceEvent& row = snapshot_.events.back();
    row.address = address.bits;
    row.size = size.bits;
    if (time.kind != Kind::none) row.time_us = time.bits;
    if (frames.kind == Kind::object) row.stack = frames.number();
    if (frames.kind == Kind::empty_list) row.stack = k_empty_stack;
    row.context = row_context_;
    row.action = static_cast<Action>(action.bits);
    return made;
  }
  row_pairs_.clear();
  for (size_t i = 0; i < values.size(); ++i) {
    row_pairs_.push_back(row_keys_[i]);
    row_pairs_.push_back(values[i]);
  }
  CUFIT_TRY(made, set_items({Kind::empty_dict, 0, 0, 0}, row_pairs_));
  const TraceEvent& row = snapshot_.events.back();
  for (Shared& shared : row_shared_) shared.last = values[shared.at];
  row_context_ = row.context;
  row_shared_known_ = row.action != Action::other;
  return made;
}

bool SnapshotBuilder::row_places(std::span<formats::PickleRowPlace> places) {
  using Place = formats::PickleRowPlace;
  std::fill(places.begin(), places.end(), Place::shared);
  places[row_address_] = Place::first;
  places[row_size_] = Place::second;
  rows_have_time_ = row_time_ != k_missing;
  rows_have_frames_ = row_frames_ != k_missing;
  if (rows_have_time_) places[row_time_] = Place::third;
  if (rows_have_frames_) places[row_frames_] = Place::list;
  rows_keys_ = row_keys_;
  rows_places_.assign(places.begin(), places.end());
  return true;
}

Result<uint32_t> SnapshotBuilder::share_row(Items values) {
  std::vector<Value> pairs;
  for (size_t i = 0; i < values.size(); ++i) {
    if (rows_places_[i] != formats::PickleRowPlace::shared) continue;
    pairs.push_back(rows_keys_[i]);
    pairs.push_back(values[i]);
  }
  TraceEvent row;
  CUFIT_TRY(set, set_event(row, pairs));
  (void)set;
  CUFIT_TRY(affordable, afford(sizeof(SharedRow)));
  (void)affordable;
  shared_rows_.push_back({row.context, row.action});
  return static_cast<uint32_t>(shared_rows_.size() - 1);
}

std::optional<Value> SnapshotBuilder::set_rows(std::span<const formats::PickleRow> rows) {
  const size_t first = snapshot_.events.size();
  if (first + rows.size() > limits_.events) return std::nullopt;
  if (const size_t bytes = rows.size() * sizeof(TraceEvent); !afford(bytes)) {
    kept_bytes_ -= bytes;
    return std::nullopt;
  }
  for (const formats::PickleRow& from : rows) {
    TraceEvent& row = snapshot_.events.push_back({});
    row.address = from.numbers[0];
    row.size = from.numbers[1];
    if (rows_have_time_) row.time_us = from.numbers[2];
    if (rows_have_frames_)
      row.stack = from.list == formats::PickleRow::k_no_list      ? k_no_stack
                  : from.list == formats::PickleRow::k_empty_list ? k_empty_stack
                                                                  : from.list;
    const SharedRow& shared = shared_rows_[from.shared];
    row.context = shared.context;
    row.action = shared.action;
  }
  return Value::object(event, first);
}

}  // namespace cufit::memory
