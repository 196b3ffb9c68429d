// SPDX-License-Identifier: Apache-2.0
// Turns the containers of a snapshot's pickle into rows while it is read. Used by snapshot.cc only.
//
// A dict is recognised by its keys at the moment they are set (`action`: an entry of a trace,
// `total_size`: a segment ...), because a pickle tells what holds a container only after it. Lists
// of rows are ranges of row numbers: entries of one trace are made one after the other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/pickle/pickle.h"
#include "memory/snapshot/snapshot.h"
#include "memory/snapshot/snapshot_words.h"

namespace cufit::memory {

class SnapshotBuilder final : public formats::PickleSink {
 public:
  using Value = formats::PickleValue;
  using Items = std::span<const Value>;

  explicit SnapshotBuilder(const SnapshotLimits& limits);

  Result<Value> set_items(Value dict, Items items) override;
  Result<Value> append(Value list, Items items) override;
  Result<Value> make_tuple(Items items) override;
  bool is_row(const Value& first_key) override { return is(first_key, Word::action); }
  bool row_keys(Items keys) override;
  Result<Value> set_row(Items values) override;
  bool row_places(std::span<formats::PickleRowPlace> places) override;
  Result<uint32_t> share_row(Items values) override;
  bool is_row_list(const Value& value) override { return value.is_object(stack); }
  std::optional<Value> set_rows(std::span<const formats::PickleRow> rows) override;
  void has_read(uint64_t bytes) override { read_bytes_ = bytes; }
  bool is_for_good(Items items, const Value& made) override;

  formats::TextPool& texts() { return snapshot_.texts; }
  // What the pickle as a whole is; the builder is used up.
  Result<Snapshot> finish(const Value& whole);

 private:
  enum Tag : uint8_t {
    frame,
    stack,
    event,
    list,
    block,
    segment,
    annotation,
    pool,
    dict,
    top,
    history,
    other
  };
  struct List {
    Tag tag = other;                                    // of all elements
    std::vector<std::pair<uint32_t, uint32_t>> ranges;  // first row, count
  };
  struct SegmentRow {
    Segment segment;
    Value blocks;
  };
  struct History {
    uint64_t real_size = k_absent;
    uint32_t stack = k_no_stack;
  };
  struct Top {
    Value segments, traces, host_segments, host_traces, settings, annotations, limits;
  };
  using Pairs = std::vector<std::pair<Value, Value>>;

  static bool is(const Value& value, Word word) {
    return value.kind == Value::Kind::text && value.bits == static_cast<uint64_t>(word);
  }
  Result<bool> afford(size_t bytes);
  Tag classify(Items items) const;
  Result<Value> create(Tag tag);
  Result<Value> set(Value dict, Items items);
  Value settle(const Value& value);
  Result<Value> add_to_dict(Value dict, Items items);

  // One function per kind of row (snapshot_rows.cc).
  Result<bool> set_event(TraceEvent& row, Items items);
  Result<bool> set_block(Block& row, Items items);
  Result<bool> set_segment(SegmentRow& row, Items items);
  Result<bool> set_annotation(Annotation& row, Items items);
  Result<bool> set_history(History& row, Items items);
  Result<bool> set_top(Top& row, Items items);
  Result<bool> set_action(TraceEvent& row, EventContext& context, const Value& value);
  static std::string context_key(const EventContext& context);
  Result<bool> put_context(TraceEvent& row, const EventContext& context);
  bool take_frames(uint32_t& stack_number, const Value& value);
  bool take_pool(std::optional<PoolId>& field, const Value& value) const;
  Error wrong(std::string_view of, const Value& key, const Value& value) const;
  void unknown(const Value& key);

  Result<Value> append_frames(Value to, Items items);
  size_t append_run(List& to, Items items);
  Result<bool> append_item(List& to, const Value& item);
  uint32_t add_list();

  // After the last byte (snapshot_finish.cc).
  Result<bool> find_python_stacks();
  Result<std::vector<Segment>> take_segments(const Value& value);
  Result<std::vector<Block>> take_blocks(const Segment& of, const Value& value);
  Result<std::vector<Trace>> take_traces(const Value& value);
  Result<Trace> take_trace(const List& entries);
  void take_annotations(const Value& value);
  void take_settings(const Value& value);
  void take_limits(const Value& value);
  std::string describe(const Value& value) const;
  std::string plain(const Value& value) const;
  Error no_snapshot(const Value& whole) const;

  const SnapshotLimits& limits_;
  // How much of the pickle has been read so far. Rows may not outgrow it: a real entry takes 73
  // bytes of the file and 32 here, so what grows faster was made to fill the memory.
  uint64_t read_bytes_ = 0;
  uint64_t kept_bytes_ = 0;
  Snapshot snapshot_;
  Chunked<Block, 10> blocks_;
  std::vector<SegmentRow> segments_;
  std::vector<Annotation> annotations_;
  std::vector<History> histories_;
  std::vector<Top> tops_;
  std::vector<PoolId> pools_;
  std::vector<Pairs> dicts_;
  std::vector<List> lists_;
  std::map<std::string, uint32_t> context_numbers_;  // by context_key()
  uint32_t last_context_ = 0;
  std::vector<uint32_t> scratch_;

  // Of set_row: the keys, where the values that a TraceEvent has of its own are among them, and the
  // others, which make the context, as they were in the row before.
  struct Shared {
    size_t at = 0;
    Value last;
  };
  std::vector<Value> row_keys_;
  std::vector<Value> row_pairs_;
  std::vector<Shared> row_shared_;
  size_t row_action_ = 0, row_address_ = 0, row_size_ = 0, row_time_ = 0, row_frames_ = 0;
  bool row_shared_known_ = false;
  uint32_t row_context_ = 0;

  // Of set_rows: its keys, whether they have a time and frames, and what share_row made.
  struct SharedRow {
    uint32_t context = 0;
    Action action = Action::other;
  };
  std::vector<Value> rows_keys_;
  std::vector<formats::PickleRowPlace> rows_places_;
  bool rows_have_time_ = false, rows_have_frames_ = false;
  std::vector<SharedRow> shared_rows_;
};

}  // namespace cufit::memory
