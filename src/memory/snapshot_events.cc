// SPDX-License-Identifier: Apache-2.0
// Entries of traces: nearly all that a snapshot holds, so this is where reading spends its time.
#include "base/format.h"
#include "memory/snapshot_builder.h"
#include "memory/snapshot_fields.h"

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

}  // namespace cufit::memory
