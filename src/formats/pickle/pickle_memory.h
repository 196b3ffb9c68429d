// SPDX-License-Identifier: Apache-2.0
// The two memories of the pickle reader: its window into the input and its memo. Used by
// pickle_machine.h only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/chunked.h"
#include "formats/pickle/pickle.h"
#include "formats/pickle/pickle_blocks.h"

namespace cufit::formats {

// A piece of the input. Behind the last byte stand zeros, so that a fixed argument may be loaded
// before its end is checked.
class PickleWindow {
 public:
  PickleWindow(PickleBlocks& input, PickleSink& sink) : input_(input), sink_(sink) {
    at = end = k_nothing;
  }

  const unsigned char* at = nullptr;
  const unsigned char* end = nullptr;

  size_t left() const { return static_cast<size_t>(end - at); }
  uint64_t offset() const { return end_offset_ - left(); }
  uint64_t end_offset() const { return end_offset_; }
  // Brings `size` bytes together if the input has them; false at its end (what there is is there).
  Result<bool> need(size_t size);
  // The bytes up to a newline, which is consumed; nothing when none comes within the limit.
  Result<std::optional<std::string_view>> line();

  // Rows that were found ahead. next_run() is where the next run of them begins, or behind all.
  const unsigned char* next_run() const { return next_run_; }
  // Of the run at next_run().
  const PickleBlock& block() const { return *block_; }
  const FoundRows::Run& run() const { return block_->rows.runs[run_]; }
  // Runs that begin before `place` are left out.
  void pass_runs(const unsigned char* place);

 private:
  static const unsigned char k_nothing[k_scan_margin];
  static const unsigned char* never() {
    return reinterpret_cast<const unsigned char*>(UINTPTR_MAX);
  }
  void find_run();
  void join(const PickleBlock& next);

  PickleBlocks& input_;
  PickleSink& sink_;  // is told how much has been read
  PickleBlock* block_ = nullptr;
  size_t run_ = 0;
  const unsigned char* next_run_ = never();
  // What does not fit before a block: a text longer than one.
  std::vector<unsigned char> joined_;
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
  // Writes what entry `index` holds; false when nothing was put there.
  bool get(uint64_t index, PickleValue& out) const {
    if (index >= entries_.size()) return false;
    uint32_t entry = entries_[index], code = entry >> k_number_bits;
    out.memo = static_cast<uint32_t>(index) + 1;
    out.tag = 0;
    out.bits = entry & ((1u << k_number_bits) - 1);
    if (code == k_text) {
      out.kind = PickleValue::Kind::text;
    } else if (code >= k_object) {
      out.kind = PickleValue::Kind::object;
      out.tag = static_cast<uint8_t>(code - k_object);
    } else {
      return get_rare(code, out);
    }
    return true;
  }
  void update(uint32_t index, const PickleValue& value) { entries_[index] = pack(value); }

 private:
  static constexpr uint32_t k_number_bits = 28;
  static constexpr uint32_t k_absent = 0, k_text = 1, k_list = 2, k_dict = 3, k_wide = 4,
                            k_object = 5;  // and the sink's tag
  uint32_t pack(const PickleValue& value) {
    if (value.bits < uint64_t{1} << k_number_bits) {
      uint32_t number = static_cast<uint32_t>(value.bits);
      if (value.kind == PickleValue::Kind::text) return k_text << k_number_bits | number;
      if (value.kind == PickleValue::Kind::empty_list) return k_list << k_number_bits;
      if (value.kind == PickleValue::Kind::empty_dict) return k_dict << k_number_bits;
      if (value.kind == PickleValue::Kind::object && k_object + value.tag < 16) {
        return (k_object + value.tag) << k_number_bits | number;
      }
    }
    return pack_rare(value);
  }
  uint32_t pack_rare(const PickleValue& value);
  bool get_rare(uint32_t code, PickleValue& out) const;

  Chunked<uint32_t, 19> entries_;  // 2 MiB each: huge pages
  std::vector<PickleValue> wide_;  // what 28 bits cannot say: numbers, which nobody memoizes
};

}  // namespace cufit::formats
