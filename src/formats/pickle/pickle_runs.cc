// SPDX-License-Identifier: Apache-2.0
// Runs of rows that were found ahead (pickle_row_scan.h) become what they would have become one by
// one. Everything is looked up before anything is done; where a look-up fails, nothing is done and
// the rows come one by one, with the error at its byte.
#include <algorithm>

#include "formats/pickle/pickle_machine.h"

namespace cufit::formats {
namespace {

using Kind = PickleValue::Kind;

constexpr size_t k_most_items = 4096;

// A GET as its index and size; of size 0: something else.
struct Get {
  uint64_t index = 0;
  size_t size = 0;
};
Get get_at(const unsigned char* at) {
  if (*at == 'h') return {at[1], 2};
  if (*at == 'j') return {load_le<uint32_t>(at + 1), 5};
  return {};
}

}  // namespace

// Rows of the form that came last are looked for in the blocks to come.
void PickleMachine::publish_form() {
  if (row_.count == 0 || runs_.off) return;
  const auto& keys = row_.keys;
  const auto same = [&](const PickleRowForm& form) {
    return form.count == row_.count &&
           std::equal(
               keys.begin(), keys.begin() + static_cast<ptrdiff_t>(form.count), form.keys.begin(),
               [](const auto& a, const auto& b) { return a.bytes == b.bytes && a.mask == b.mask; });
  };
  if (runs_.form != nullptr && same(*runs_.form)) return;
  auto form = std::make_shared<PickleRowForm>();
  form->keys = row_.keys;
  form->names = row_.names;
  form->count = row_.count;
  if (!sink_.row_places({form->places.data(), form->count})) return;
  runs_.form = form;
  runs_.block = 0;
  input_.look_for(std::move(form));
}

// The list of a row that is a GET. `end`: entries there are when its row is complete.
bool PickleMachine::resolve_get(const FoundMemo* memos, uint64_t end, uint32_t& list) {
  const uint64_t index = list & ~FoundList::k_kind;
  if (index >= memo_.size()) {
    if (index >= end) return false;
    const FoundMemo& memo = memos[index - memo_.size()];
    if (memo.kind == FoundMemo::Kind::empty_list) list = PickleRow::k_empty_list;
    if (memo.kind == FoundMemo::Kind::list) list = runs_.lists[memo.number].value.number();
    return memo.kind == FoundMemo::Kind::empty_list || memo.kind == FoundMemo::Kind::list;
  }
  PickleValue value;
  if (!memo_.get(index, value)) return false;
  if (value.kind != Kind::empty_list && !sink_.is_row_list(value)) return false;
  list = value.kind == Kind::empty_list ? PickleRow::k_empty_list : value.number();
  return true;
}

bool PickleMachine::resolve_list(const PickleBlock& block, uint32_t number) {
  PickleRuns::List& list = runs_.lists[number];
  if (list.is_known) return true;
  const FoundRows::List& found = block.rows.lists[number];
  const PickleLists::Bytes bytes(block.begin + found.begin, found.size);
  if (const PickleValue* known = lists_.find(bytes); known != nullptr) {
    list.value = *known;
  } else {
    row_items_.clear();
    for (size_t at = 0; at < bytes.size();) {
      const Get get = get_at(bytes.data() + at);
      PickleValue item;
      if (row_items_.size() == k_most_items || !memo_.get(get.index, item)) return false;
      row_items_.push_back(item);
      at += get.size;
    }
    const Result<PickleValue> filled = sink_.append({Kind::empty_list, 0, 0, 0}, row_items_);
    runs_.off = !filled || !sink_.is_for_good(row_items_, *filled);
    if (runs_.off) return false;
    lists_.keep(bytes, *filled);
    list.value = *filled;
  }
  runs_.off = !sink_.is_row_list(list.value);
  list.is_known = !runs_.off;
  return list.is_known;
}

bool PickleMachine::resolve_shared(const PickleBlock& block, uint32_t number) {
  PickleRuns::Shared& shared = runs_.shared[number];
  if (shared.run == runs_.run) return true;
  const PickleRowForm& form = *block.form;
  std::array<PickleValue, k_row_keys> values;
  bool same = shared.is_known;
  for (size_t key = 0; key < form.count; ++key) {
    if (form.places[key] != PickleRowPlace::shared) continue;
    const unsigned char* const at = block.begin + block.rows.shared[number][key];
    PickleValue& value = values[key];
    if (const Get get = get_at(at); get.size != 0) {
      if (!memo_.get(get.index, value)) return false;
    } else if (*at == 0x8c) {
      if (texts_.size() >= limits_.texts) return false;
      value = {Kind::text, 0, 0, texts_.intern({reinterpret_cast<const char*>(at) + 2, at[1]})};
    } else {
      const unsigned char* behind = at;
      if (row_value(behind, at + 16, value) != Rows::done) return false;
    }
    const PickleValue& before = shared.values[key];
    same =
        same && value.kind == before.kind && value.tag == before.tag && value.bits == before.bits;
  }
  if (!same) {
    shared.values = values;
    const Result<uint32_t> made = sink_.share_row({values.data(), form.count});
    runs_.off = !made;
    if (!made) return false;
    shared.number = *made;
    shared.is_known = true;
  }
  shared.run = runs_.run;
  return true;
}

// Into runs_.rows, with all that they refer to.
bool PickleMachine::resolve_run(const PickleBlock& block, const FoundRows::Run& run) {
  if (runs_.block != window_.end_offset()) {
    runs_.block = window_.end_offset();
    runs_.shared.assign(block.rows.shared.size(), {});
    runs_.lists.assign(block.rows.lists.size(), {});
  }
  ++runs_.run;
  const PickleRow* const first = block.rows.rows.data() + run.first_row;
  runs_.rows.assign(first, first + run.rows);
  const FoundMemo* const memos = block.rows.memos.data() + run.first_memo;
  size_t memo = 0;
  for (PickleRow& row : runs_.rows) {
    if (!resolve_shared(block, row.shared)) return false;
    row.shared = runs_.shared[row.shared].number;
    for (++memo; memo < run.memos && memos[memo].kind != FoundMemo::Kind::row;) ++memo;
    switch (row.list & FoundList::k_kind) {
      case FoundList::k_none:
        row.list = PickleRow::k_no_list;
        break;
      case FoundList::k_empty:
        row.list = PickleRow::k_empty_list;
        break;
      case FoundList::k_get:
        if (!resolve_get(memos, memo_.size() + memo, row.list)) return false;
        break;
      default: {
        const uint32_t number = row.list & ~FoundList::k_kind;
        if (!resolve_list(block, number)) return false;
        row.list = runs_.lists[number].value.number();
      }
    }
  }
  return true;
}

// What MEMOIZE would have kept, and the rows on the stack.
void PickleMachine::remember_run(const FoundRows::Run& run, const FoundMemo* memos,
                                 PickleValue first) {
  const PickleBlock& block = window_.block();
  const PickleRow* row = block.rows.rows.data() + run.first_row;
  for (size_t i = 0; i < run.memos; ++i) {
    switch (memos[i].kind) {
      case FoundMemo::Kind::row:
        memo_.push(first);
        first.memo = static_cast<uint32_t>(memo_.size());
        stack_[top_++] = first;
        ++first.bits;
        row += i > 0 ? 1 : 0;
        break;
      case FoundMemo::Kind::text:
        memo_.push(runs_.shared[row->shared].values[memos[i].number]);
        break;
      case FoundMemo::Kind::list:
        memo_.push(runs_.lists[memos[i].number].value);
        break;
      case FoundMemo::Kind::empty_list:
        memo_.push({Kind::empty_list, 0, 0, 0});
        break;
    }
  }
}

// The run that begins at `at`, if one does: how many rows it had; 0: none, and nothing is done.
size_t PickleMachine::take_run(const unsigned char*& at, size_t room) {
  window_.pass_runs(at);
  if (at != window_.next_run()) return 0;
  const PickleBlock& block = window_.block();
  const FoundRows::Run& run = window_.run();
  if (runs_.off || block.form != runs_.form || run.rows >= room ||
      memo_.size() + run.memos > limits_.memo_entries)
    return 0;
  if (!resolve_run(block, run)) return 0;
  const std::optional<PickleValue> first = sink_.set_rows(runs_.rows);
  runs_.off = !first;
  if (runs_.off) return 0;
  remember_run(run, block.rows.memos.data() + run.first_memo, *first);
  runs_.single_rows = 0;
  at = block.begin + run.end;
  return run.rows;
}

}  // namespace cufit::formats
