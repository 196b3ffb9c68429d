// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle/pickle_row_scan.h"

#include <algorithm>
#include <cstring>

#include "formats/pickle/text_pool.h"

namespace cufit::formats {
namespace {

constexpr unsigned char k_pickle_row_scan_memoize = 0x94, k_frame = 0x95, k_long1 = 0x8a,
                        k_short_text = 0x8c;
constexpr size_t k_frame_size = 9;
constexpr uint32_t k_most_numbers = 1u << 30;
// Bounds of what a file made for it could cost: rows whose search is long and that are none.
constexpr ptrdiff_t k_list_bytes = 5 * k_row_items;
constexpr size_t k_most_shared = 256;

uint64_t first_bytes(const unsigned char* at, size_t size) {
  return load_le<uint64_t>(at) & (~uint64_t{0} >> (64 - 8 * size));
}

// An int that is no less than 0; null otherwise. Frames may begin between any two values.
const unsigned char* number(const unsigned char* at, uint64_t& out) {
  size_t size = 0;
  const unsigned char* from = at + 1;
  switch (*at) {
    case k_long1:
      size = at[1];
      from = at + 2;
      if (size - 1u >= 8) return nullptr;
      break;
    case 'J':
      size = 4;
      break;
    case 'M':
      size = 2;
      break;
    case 'K':
      size = 1;
      break;
    default:
      return nullptr;
  }
  out = first_bytes(from, size);
  const bool is_signed = *at == 'J' || *at == k_long1;
  if (is_signed && (from[size - 1] & 0x80) != 0) return nullptr;
  return from + size;
}

}  // namespace

void FoundRows::clear() {
  runs.clear();
  rows.clear();
  memos.clear();
  lists.clear();
  shared.clear();
}

// Answers with the byte behind the value of a shared key, or null.
const unsigned char* PickleRowScan::shared_value(const unsigned char* at, size_t key) {
  size_t size = 0;
  switch (*at) {
    case 'h':
    case 'K':
      size = 2;
      break;
    case 'j':
    case 'J':
      size = 5;
      break;
    case 'M':
      size = 3;
      break;
    case 'N':
      size = 1;
      break;
    case k_long1:
      size = 2 + size_t{at[1]};
      if (at[1] - 1u >= 8) return nullptr;
      break;
    case k_short_text:
      size = 3 + size_t{at[1]};
      if (at + size > end_ || at[size - 1] != k_pickle_row_scan_memoize) return nullptr;
      out_->memos.emplace_back(FoundMemo::Kind::text, static_cast<uint32_t>(key));
      break;
    default:
      return nullptr;
  }
  const bool is_long = size > 8;
  values_[key] = is_long ? hash_bytes(at, size) : first_bytes(at, size);
  long_sizes_[key] = static_cast<uint8_t>(is_long ? std::min<size_t>(size, 255) : 0);
  if (is_long && size > 255) return nullptr;
  offsets_[key] = static_cast<uint32_t>(at - begin_);
  return at + size;
}

// The values of rows that differ in their shared ones are few; which of them a row has is told by
// its first one, the action, mostly.
uint32_t PickleRowScan::shared_number() {
  const auto same = [&](size_t number) {
    const SharedRow& row = shared_[number];
    uint64_t differs = 0;
    for (size_t key = first_shared_; key < form_->count; ++key) {
      if (form_->places[key] != PickleRowPlace::shared) continue;
      differs |= row.values[key] ^ values_[key];
      differs |= row.long_sizes[key] ^ long_sizes_[key];
      if (differs != 0) return false;
      const size_t size = long_sizes_[key];
      if (size != 0 &&
          std::memcmp(begin_ + out_->shared[number][key], begin_ + offsets_[key], size))
        return false;
    }
    return true;
  };
  constexpr uint64_t k_spread = 0x9e3779b97f4a7c15;
  uint32_t& guess = guess_[values_[first_shared_] * k_spread >> 58];
  if (guess != 0 && same(guess - 1)) return guess - 1;
  for (size_t i = 0; i < shared_.size(); ++i) {
    if (!same(i)) continue;
    guess = static_cast<uint32_t>(i + 1);
    return guess - 1;
  }
  shared_.push_back({values_, long_sizes_});
  out_->shared.push_back(offsets_);
  guess = static_cast<uint32_t>(shared_.size());
  return guess - 1;
}

const unsigned char* PickleRowScan::list(const unsigned char* at, uint32_t& out) {
  using K = FoundList;
  uint64_t index = 0;
  switch (*at) {
    case 'N':
      out = K::k_none;
      return at + 1;
    case 'h':
    case 'j':
      index = *at == 'h' ? at[1] : load_le<uint32_t>(at + 1);
      if (index >= k_most_numbers) return nullptr;
      out = K::k_get | static_cast<uint32_t>(index);
      return at + (*at == 'h' ? 2 : 5);
    case ']':
      break;
    default:
      return nullptr;
  }
  if (at[1] != k_pickle_row_scan_memoize) return nullptr;
  if (at[2] != '(') {
    out = K::k_empty;
    out_->memos.emplace_back(FoundMemo::Kind::empty_list, 0);
    return at + 2;
  }
  const unsigned char* const first = at + 3;
  if (first >= end_) return nullptr;
  Known* known = nullptr;
  const unsigned char* behind = first;
  const auto expected = lists_.expect({first, static_cast<size_t>(end_ - first)}, 'e');
  if (expected.value != nullptr) {
    known = expected.value;
    behind = first + expected.size;
  } else {
    const unsigned char* const last = first + std::min(k_list_bytes, end_ - first);
    while (behind < last && (*behind == 'j' || *behind == 'h')) behind += *behind == 'j' ? 5 : 2;
    if (behind >= end_ || *behind != 'e' || behind == first) return nullptr;
    known = lists_.find({first, static_cast<size_t>(behind - first)});
  }
  const auto items = std::span(first, static_cast<size_t>(behind - first));
  if (known == nullptr || known->round != round_) {
    const Known added{round_, static_cast<uint32_t>(out_->lists.size())};
    out_->lists.push_back(
        {static_cast<uint32_t>(first - begin_), static_cast<uint32_t>(items.size())});
    if (known != nullptr)
      *known = added;
    else
      lists_.keep(items, added);
    out = K::k_list | added.number;
  } else {
    out = K::k_list | known->number;
  }
  out_->memos.emplace_back(FoundMemo::Kind::list, out & ~K::k_kind);
  return behind + 1;
}

// The byte behind the row that begins at `at`, or null where it is not of the form or not whole.
const unsigned char* PickleRowScan::row(const unsigned char* at) {
  PickleRow& row = out_->rows.emplace_back();
  row.list = FoundList::k_none;
  out_->memos.emplace_back(FoundMemo::Kind::row, 0);
  at += 3;  // } MEMOIZE (
  for (size_t i = 0; i < form_->count; ++i) {
    const PickleRowKeys::Key& key = form_->keys[i];
    if ((load_le<uint64_t>(at) & key.mask) != key.bytes) {
      if (at >= end_ || *at != k_frame) return nullptr;
      at += k_frame_size;
      if (at >= end_ || (load_le<uint64_t>(at) & key.mask) != key.bytes) return nullptr;
    }
    at += key.size;
    if (at < end_ && *at == k_frame) at += k_frame_size;
    if (at >= end_) return nullptr;
    switch (form_->places[i]) {
      case PickleRowPlace::first:
      case PickleRowPlace::second:
      case PickleRowPlace::third:
        at = number(at, row.numbers[static_cast<size_t>(form_->places[i])]);
        break;
      case PickleRowPlace::list:
        at = list(at, row.list);
        break;
      case PickleRowPlace::shared:
        at = shared_value(at, i);
        break;
    }
    if (at == nullptr || at >= end_) return nullptr;
  }
  if (shared_.size() >= k_most_shared) return nullptr;
  if (*at == k_frame) at += k_frame_size;
  if (at >= end_ || *at != 'u') return nullptr;
  row.shared = shared_number();
  return at + 1;
}

const unsigned char* PickleRowScan::next_row(const unsigned char* at) const {
  const PickleRowKeys::Key& key = form_->keys[0];
  while (at + 16 < end_) {
    const void* found = std::memchr(at, '}', static_cast<size_t>(end_ - at) - 16);
    if (found == nullptr) return nullptr;
    at = static_cast<const unsigned char*>(found);
    if (at[1] == k_pickle_row_scan_memoize && at[2] == '(' &&
        (load_le<uint64_t>(at + 3) & key.mask) == key.bytes)
      return at;
    ++at;
  }
  return nullptr;
}

// Rows one behind the other; `at` ends behind them.
void PickleRowScan::run_from(const unsigned char*& at) {
  FoundRows::Run run;
  run.begin = static_cast<uint32_t>(at - begin_);
  run.first_row = static_cast<uint32_t>(out_->rows.size());
  run.first_memo = static_cast<uint32_t>(out_->memos.size());
  while (at + 3 < end_ && at[0] == '}' && at[1] == k_pickle_row_scan_memoize && at[2] == '(') {
    const size_t memos = out_->memos.size();
    const unsigned char* const behind = row(at);
    if (behind == nullptr) {
      out_->memos.resize(memos);
      out_->rows.pop_back();
      break;
    }
    at = behind;
  }
  run.end = static_cast<uint32_t>(at - begin_);
  run.rows = static_cast<uint32_t>(out_->rows.size()) - run.first_row;
  run.memos = static_cast<uint32_t>(out_->memos.size()) - run.first_memo;
  if (run.rows > 0) out_->runs.push_back(run);
}

void PickleRowScan::find(std::span<const unsigned char> block, const PickleRowForm& form,
                         FoundRows& out) {
  out.clear();
  shared_.clear();
  guess_.fill(0);
  ++round_;
  begin_ = block.data();
  end_ = begin_ + block.size();
  form_ = &form;
  out_ = &out;
  first_shared_ = 0;
  while (first_shared_ < form.count && form.places[first_shared_] != PickleRowPlace::shared)
    ++first_shared_;
  if (first_shared_ == form.count) return;
  for (const unsigned char* at = next_row(begin_); at != nullptr;) {
    const unsigned char* const first = at;
    run_from(at);
    at = next_row(at == first ? at + 1 : at);
  }
}

}  // namespace cufit::formats
