// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle/pickle_memory.h"

#include <algorithm>
#include <cstring>

namespace cufit::formats {
namespace {

using Kind = PickleValue::Kind;

constexpr size_t k_line = 1u << 20;
constexpr size_t k_wide_values = 1u << 22;
constexpr uint64_t k_memo_gap = 1u << 16;

}  // namespace

const unsigned char PickleWindow::k_nothing[k_scan_margin] = {};

void PickleWindow::find_run() {
  const bool has = block_ != nullptr && block_->form != nullptr && run_ < block_->rows.runs.size();
  next_run_ = has ? block_->begin + block_->rows.runs[run_].begin : never();
}

void PickleWindow::pass_runs(const unsigned char* place) {
  while (next_run_ < place) {
    ++run_;
    find_run();
  }
}

// Behind what is left, in memory of its own: the rows of the block lie elsewhere then.
void PickleWindow::join(const PickleBlock& next) {
  const size_t whole = left() + next.size;
  if (block_ == nullptr && !joined_.empty()) {
    joined_.erase(joined_.begin(), joined_.begin() + (at - joined_.data()));
    joined_.resize(whole - next.size);
  } else {
    joined_.assign(at, end);
  }
  joined_.insert(joined_.end(), next.begin, next.begin + next.size);
  joined_.resize(whole + k_scan_margin);
  at = joined_.data();
  end = at + whole;
  block_ = nullptr;
}

Result<bool> PickleWindow::need(size_t size) {
  while (left() < size) {
    CUFIT_TRY(next, input_.next());
    if (next == nullptr) return false;
    const size_t have = left();
    if (have <= PickleBlock::k_headroom && size <= have + next->size) {
      std::memcpy(next->begin - have, at, have);
      at = next->begin - have;
      end = next->begin + next->size;
      block_ = next;
    } else {
      join(*next);
    }
    end_offset_ += next->size;
    sink_.has_read(end_offset_);
    run_ = 0;
    find_run();
  }
  return true;
}

Result<std::optional<std::string_view>> PickleWindow::line() {
  for (size_t searched = 0;;) {
    const unsigned char* found = std::find(at + searched, end, '\n');
    if (found != end) {
      std::string_view text(reinterpret_cast<const char*>(at), static_cast<size_t>(found - at));
      at = found + 1;
      return std::optional<std::string_view>(text);
    }
    searched = left();
    if (searched > k_line) return std::optional<std::string_view>();
    CUFIT_TRY(more, need(searched + 1));
    if (!more) return std::optional<std::string_view>();
  }
}

uint32_t PickleMemo::pack_rare(const PickleValue& value) {
  // Writers memoize texts and containers; a file that has millions of others loses the rest, and
  // a later GET says so.
  if (wide_.size() >= k_wide_values) return k_absent;
  wide_.push_back(value);
  return k_wide << k_number_bits | static_cast<uint32_t>(wide_.size() - 1);
}

bool PickleMemo::put(uint64_t index, const PickleValue& value) {
  if (index < size()) {
    update(static_cast<uint32_t>(index), value);
    return true;
  }
  if (index > size() + k_memo_gap) return false;
  while (size() < index) entries_.push_back(k_absent);
  push(value);
  return true;
}

bool PickleMemo::get_rare(uint32_t code, PickleValue& out) const {
  uint32_t memo = out.memo;
  if (code == k_absent) return false;
  if (code == k_wide) out = wide_[out.bits];
  if (code == k_list) out = {Kind::empty_list, 0, 0, 0};
  if (code == k_dict) out = {Kind::empty_dict, 0, 0, 0};
  out.memo = memo;
  return true;
}

}  // namespace cufit::formats
