// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_memory.h"

#include <algorithm>

namespace cufit::formats {
namespace {

using Kind = PickleValue::Kind;

constexpr size_t k_window = 256u << 10;  // half of an L2 cache
constexpr size_t k_zeros = 16;           // the longest fixed argument has 8 bytes
constexpr size_t k_line = 1u << 20;
constexpr size_t k_wide_values = 1u << 22;
constexpr uint64_t k_memo_gap = 1u << 16;

}  // namespace

PickleWindow::PickleWindow(ByteStream& input) : input_(input), buffer_(k_window + k_zeros) {
  at = end = buffer_.data();
}

Result<bool> PickleWindow::need(size_t size) {
  size_t have = left();
  if (have >= size) return true;
  if (size + k_zeros > buffer_.size()) {
    std::vector<unsigned char> larger(std::max(size + k_zeros, 2 * buffer_.size()));
    std::copy(at, end, larger.begin());
    buffer_.swap(larger);
  } else {
    std::copy(at, end, buffer_.begin());  // towards the front, so an overlap is harmless
  }
  at = buffer_.data();
  while (have < size) {
    size_t room = buffer_.size() - k_zeros - have;
    auto got = input_.read({reinterpret_cast<std::byte*>(buffer_.data() + have), room});
    if (!got) {
      end = at + have;
      return got.error();
    }
    if (*got == 0) break;
    have += *got;
    end_offset_ += *got;
  }
  end = at + have;
  std::fill_n(buffer_.begin() + static_cast<std::ptrdiff_t>(have), k_zeros, 0);
  return have >= size;
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
