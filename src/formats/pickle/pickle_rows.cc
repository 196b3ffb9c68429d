// SPDX-License-Identifier: Apache-2.0
// A trace is a million dicts with the same keys. Where the bytes of a dict's keys are those of the
// dict before, only its values are looked at, and the sink gets them side by side. What is not as
// expected is put on the stack as if every opcode so far had been handled one by one, and goes on
// there.
//
//   } MEMOIZE ( GET value GET value ... SETITEMS
//   value: GET, BININT*, LONG1, NONE, SHORT_BINUNICODE MEMOIZE, ] MEMOIZE,
//          ] MEMOIZE ( GET GET ... APPENDS
#include <algorithm>

#include "formats/pickle/pickle_machine.h"

namespace cufit::formats {
namespace {

using Kind = PickleValue::Kind;

constexpr unsigned char k_pickle_rows_memoize = 0x94;
constexpr uint32_t k_most_skipped = 4096;
constexpr size_t k_publish_after = 8;  // rows of a form that nobody looks for

bool is_get(const unsigned char* at) { return *at == 'h' || *at == 'j'; }
size_t get_size(const unsigned char* at) { return *at == 'h' ? 2 : 5; }
uint64_t get_index(const unsigned char* at) {
  return *at == 'h' ? at[1] : load_le<uint32_t>(at + 1);
}

// The byte behind a value of the kinds above, or null. Reads no byte beyond `end` and 16 more.
const unsigned char* behind_value(const unsigned char* at, const unsigned char* end) {
  switch (*at) {
    case 'h':
    case 'j':
      return at + get_size(at);
    case 'K':
      return at + 2;
    case 'M':
      return at + 3;
    case 'J':
      return at + 5;
    case 'N':
      return at + 1;
    case 0x8a:
      return at[1] - 1u < 8 ? at + 2 + at[1] : nullptr;
    case 0x8c:
      at += 2 + at[1];
      return at < end && *at == k_pickle_rows_memoize ? at + 1 : nullptr;
    case ']':
      if (at[1] != k_pickle_rows_memoize) return nullptr;
      if (at[2] != '(') return at + 2;
      at += 3;
      while (at < end && is_get(at)) at += get_size(at);
      return at < end && *at == 'e' ? at + 1 : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

bool PickleMachine::learn_row(const unsigned char* at, const unsigned char* end) {
  at += 3;  // } MEMOIZE (
  PickleValue first;
  if (!is_get(at) || !memo_.get(get_index(at), first) || !sink_.is_row(first)) return false;
  if (row_.to_skip > 0) {
    --row_.to_skip;
    return false;
  }
  row_.count = 0;
  size_t count = 0;
  while (at != nullptr && at < end && is_get(at) && count < k_row_keys) {
    PickleValue& name = row_.names[count];
    if (!memo_.get(get_index(at), name) || name.kind != Kind::text) break;
    const size_t size = get_size(at);
    const uint64_t mask = (uint64_t{1} << (8 * size)) - 1;
    row_.keys[count++] = {load_le<uint64_t>(at) & mask, mask, static_cast<uint8_t>(size)};
    at = behind_value(at + size, end);
  }
  const bool learnt = at != nullptr && at < end && *at == 'u' && count > 0 &&
                      sink_.row_keys({row_.names.data(), count});
  row_.count = learnt ? count : 0;
  row_.failures = learnt ? 0 : row_.failures + 1;
  row_.to_skip = learnt ? 0 : std::min(k_most_skipped, 1u << std::min(row_.failures, 12u));
  return learnt;
}

// The state as it is before value number `values`, or before item number `items` of the list that
// is this value.
bool PickleMachine::leave_row(uint32_t memo, size_t values, bool has_key, bool in_list) {
  const auto push_with_memo = [&](PickleValue value, uint32_t entry) {
    value.memo = entry;
    return push(value);
  };
  if (!push_with_memo({Kind::empty_dict, 0, 0, 0}, memo)) return false;
  marks_.push_back(top_);
  for (size_t i = 0; i < values; ++i)
    if (!push(row_.names[i]) || !push(row_values_[i])) return false;
  if (has_key && !push(row_.names[values])) return false;
  if (!in_list) return true;
  if (!push_with_memo({Kind::empty_list, 0, 0, 0}, static_cast<uint32_t>(memo_.size())))
    return false;
  marks_.push_back(top_);
  for (const PickleValue& item : row_items_)
    if (!push(item)) return false;
  return true;
}

PickleMachine::Rows PickleMachine::row_list(const unsigned char*& at, const unsigned char* end,
                                            PickleValue& out) {
  row_items_.clear();
  memo_.push({Kind::empty_list, 0, 0, 0});
  const auto entry = static_cast<uint32_t>(memo_.size());
  at += 3;
  // What stands between MARK and APPENDS as bytes: the same bytes get the same items from the memo,
  // since no entry of it is written twice here (row_.off).
  const unsigned char* const first = at;
  const auto take = [&](const PickleValue& known, const unsigned char* behind) {
    out = known;
    out.memo = entry;
    memo_.update(entry - 1, out);
    at = behind + 1;
    return Rows::done;
  };
  const size_t left = at < end ? static_cast<size_t>(end - at) : 0;
  if (const auto known = lists_.expect({first, left}, 'e'); known.value != nullptr)
    return take(*known.value, first + known.size);
  const unsigned char* behind = at;
  while (behind < end && is_get(behind)) behind += get_size(behind);
  const bool is_whole = behind < end && *behind == 'e';
  const PickleLists::Bytes items(first, is_whole ? static_cast<size_t>(behind - first) : 0);
  if (const PickleValue* known = lists_.find(items)) return take(*known, behind);
  PickleValue item;
  while (at < end && is_get(at) && row_items_.size() < k_row_items) {
    if (!memo_.get(get_index(at), item)) return Rows::left;
    row_items_.push_back(item);
    at += get_size(at);
  }
  if (at >= end || *at != 'e' || row_items_.empty()) return Rows::left;
  Result<PickleValue> filled = sink_.append({Kind::empty_list, 0, entry, 0}, row_items_);
  if (!filled) {
    window_.at = at;
    offset_ = window_.offset();
    stop(filled.error().code, filled.error().what);
    return Rows::failed;
  }
  if (sink_.is_for_good(row_items_, *filled)) lists_.keep(items, *filled);
  filled->memo = entry;
  memo_.update(entry - 1, *filled);
  out = *filled;
  ++at;
  return Rows::done;
}

PickleMachine::Rows PickleMachine::row_value(const unsigned char*& at, const unsigned char* end,
                                             PickleValue& out) {
  out.tag = 0;
  out.memo = 0;
  switch (*at) {
    case 'h':
    case 'j':
      if (!memo_.get(get_index(at), out)) return Rows::left;
      at += get_size(at);
      return Rows::done;
    case 'J':
    case 'K':
    case 'M': {
      const unsigned bytes = *at == 'J' ? 4 : *at == 'K' ? 1 : 2, shift = 64 - 8 * bytes;
      const uint64_t raised = load_le<uint64_t>(at + 1) << shift;
      const uint64_t extended = static_cast<uint64_t>(static_cast<int64_t>(raised) >> shift);
      out.kind = Kind::integer;
      out.bits = *at == 'J' ? extended : raised >> shift;
      at += 1 + bytes;
      return Rows::done;
    }
    case 0x8a: {
      if (at[1] - 1u >= 8) return Rows::left;
      const unsigned shift = 64 - 8 * at[1];
      const uint64_t raised = load_le<uint64_t>(at + 2) << shift;
      out.kind = Kind::integer;
      out.bits = static_cast<uint64_t>(static_cast<int64_t>(raised) >> shift);
      at += 2 + at[1];
      return Rows::done;
    }
    case 'N':
      out.kind = Kind::none;
      out.bits = 0;
      ++at;
      return Rows::done;
    case ']':  // an empty one
      if (at[1] != k_pickle_rows_memoize) return Rows::left;
      out.kind = Kind::empty_list;
      out.bits = 0;
      memo_.push(out);
      out.memo = static_cast<uint32_t>(memo_.size());
      at += 2;
      return Rows::done;
    case 0x8c: {
      const size_t size = at[1];
      if (at + 2 + size >= end || at[2 + size] != k_pickle_rows_memoize ||
          texts_.size() >= limits_.texts)
        return Rows::left;
      out.kind = Kind::text;
      out.bits = texts_.intern({reinterpret_cast<const char*>(at) + 2, size});
      memo_.push(out);
      out.memo = static_cast<uint32_t>(memo_.size());
      at += 3 + size;
      return Rows::done;
    }
    default:
      return Rows::left;
  }
}

PickleMachine::Rows PickleMachine::rows(const unsigned char*& at, const unsigned char* end) {
  const size_t room = stack_.size() - top_;
  if (marks_.size() + 2 > limits_.marks || row_.off) return Rows::none;
  size_t rows = 0;
  for (; rows + 1 < room; ++rows) {
    if (at >= end || at[0] != '}' || at[1] != k_pickle_rows_memoize || at[2] != '(') break;
    if (at >= window_.next_run()) {
      if (const size_t taken = take_run(at, room - rows); taken > 0) {
        rows += taken - 1;
        continue;
      }
    }
    if (memo_.size() + 2 * k_row_keys > limits_.memo_entries) return Rows::none;
    if (row_.count == 0 || (load_le<uint64_t>(at + 3) & row_.keys[0].mask) != row_.keys[0].bytes) {
      if (!learn_row(at, end)) return Rows::none;
    }
    memo_.push({Kind::empty_dict, 0, 0, 0});
    const auto entry = static_cast<uint32_t>(memo_.size());
    at += 3;
    for (size_t i = 0; i < row_.count; ++i) {
      const PickleRowKeys::Key& key = row_.keys[i];
      if (at >= end || (load_le<uint64_t>(at) & key.mask) != key.bytes) {
        row_.count = at < end ? 0 : row_.count;  // other keys: learn them from the next
        const size_t values = i;
        return leave_row(entry, values, false, false) ? Rows::left : Rows::failed;
      }
      at += key.size;
      const bool is_list =
          at < end && at[0] == ']' && at[1] == k_pickle_rows_memoize && at[2] == '(';
      const Rows got = at >= end ? Rows::left
                       : is_list ? row_list(at, end, row_values_[i])
                                 : row_value(at, end, row_values_[i]);
      if (got == Rows::failed) return got;
      if (got == Rows::left) return leave_row(entry, i, true, is_list) ? got : Rows::failed;
    }
    if (at >= end || *at != 'u') {
      const size_t values = row_.count;
      if (at < end) row_.count = 0;
      return leave_row(entry, values, false, false) ? Rows::left : Rows::failed;
    }
    Result<PickleValue> made = sink_.set_row({row_values_.data(), row_.count});
    if (!made) {
      window_.at = at;
      offset_ = window_.offset();
      stop(made.error().code, made.error().what);
      return Rows::failed;
    }
    ++at;
    made->memo = entry;
    memo_.update(entry - 1, *made);
    stack_[top_++] = *made;
    if (++runs_.single_rows % k_publish_after == 0) publish_form();
  }
  return rows > 0 ? Rows::done : Rows::none;
}

}  // namespace cufit::formats
