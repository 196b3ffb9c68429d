// SPDX-License-Identifier: Apache-2.0
// The two memories of the pickle reader: its window into the input and its memo. Used by pickle.cc
// only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/chunked.h"
#include "formats/pickle.h"

namespace cufit::formats {

// A piece of the input. Behind the last byte stand zeros, so that a fixed argument may be loaded
// before its end is checked.
class PickleWindow {
 public:
  explicit PickleWindow(ByteStream& input);

  const unsigned char* at = nullptr;
  const unsigned char* end = nullptr;

  size_t left() const { return static_cast<size_t>(end - at); }
  uint64_t offset() const { return end_offset_ - left(); }
  // Brings `size` bytes together if the input has them; false at its end (what there is is there).
  Result<bool> need(size_t size);
  // The bytes up to a newline, which is consumed; nothing when none comes within the limit.
  Result<std::optional<std::string_view>> line();

 private:
  ByteStream& input_;
  std::vector<unsigned char> buffer_;
  uint64_t end_offset_ = 0;
};

// What PUT and MEMOIZE keep, in 4 bytes each: a code of 4 bits and a number of 28.
class PickleMemo {
 public:
  size_t size() const { return entries_.size(); }
  // False when `index` is far from the entries there are: writers count up by one, and a hostile
  // file shall not make a large table with a short opcode.
  bool put(uint64_t index, const PickleValue& value);
  void push(const PickleValue& value) { entries_.push_back(pack(value)); }
  std::optional<PickleValue> get(uint64_t index) const;
  void update(uint32_t index, const PickleValue& value) { entries_[index] = pack(value); }

 private:
  uint32_t pack(const PickleValue& value);

  Chunked<uint32_t> entries_;
  std::vector<PickleValue> wide_;  // what 28 bits cannot say: numbers, which nobody memoizes
};

}  // namespace cufit::formats
