// SPDX-License-Identifier: Apache-2.0
// Lists that came before, by the bytes of their items: of a million stacks in a file some hundred
// differ, and each is up to a hundred GETs. A program does in every step what it did in the step
// before, so that the list that followed the last three last time mostly follows again (after one
// of six in seven, after three 95 %): then comparing its bytes is all. Used by pickle_machine.h and
// pickle_row_scan.h only.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "formats/pickle/pickle.h"
#include "formats/pickle/text_pool.h"

namespace cufit::formats {

// Keeps what it can find again cheaply, and forgets the rest: 4096 lists, 8 MiB of bytes together.
template <class Value>
class ListsByBytes {
 public:
  using Bytes = std::span<const unsigned char>;

  struct Known {
    Value* value = nullptr;  // null: not known
    size_t size = 0;         // of its items, in bytes
  };

  // The list that is expected, if `text` begins with its items and the opcode `end` behind them.
  // These are then all of its items: bytes that were items before are the same items again.
  Known expect(Bytes text, unsigned char end) {
    if (slots_.empty()) return {};
    const uint32_t next = followers_[last_three_];
    Slot& slot = slots_[next];
    const bool same = slot.size != 0 && slot.size < text.size() && text[slot.size] == end &&
                      std::memcmp(bytes_.data() + slot.begin, text.data(), slot.size) == 0;
    if (!same) return {};
    remember(next);
    return {&slot.value, slot.size};
  }

  Value* find(Bytes items) {
    if (slots_.empty()) return nullptr;
    const size_t place = place_of(items);
    Slot& slot = slots_[place];
    const bool same = slot.size == items.size() && slot.size != 0 &&
                      std::memcmp(bytes_.data() + slot.begin, items.data(), items.size()) == 0;
    if (!same) return nullptr;
    follow(place);
    return &slot.value;
  }

  void keep(Bytes items, const Value& value) {
    if (items.size() > k_bytes / 16) return;
    if (bytes_.size() + items.size() > k_bytes) forget();
    if (slots_.empty()) slots_.resize(k_slots), followers_.resize(k_slots);
    const size_t place = place_of(items);
    slots_[place] = {static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(items.size()),
                     value};
    follow(place);
    bytes_.insert(bytes_.end(), items.begin(), items.end());
  }

 private:
  static constexpr size_t k_slots = 4096, k_bytes = 8u << 20;
  struct Slot {
    uint32_t begin = 0, size = 0;  // in bytes_; 0: free
    Value value;
  };
  void forget() {
    slots_.clear();
    bytes_.clear();
    last_three_ = 0;
  }
  void follow(size_t place) {
    followers_[last_three_] = static_cast<uint32_t>(place);
    remember(static_cast<uint32_t>(place));
  }
  // Of twelve bits the fourth list before this one has left none.
  void remember(uint32_t place) {
    static_assert(k_slots == 1u << 12);
    last_three_ = (last_three_ << 4 ^ place * 0x9e3779b1u >> 20) % k_slots;
  }
  static size_t place_of(Bytes items) {
    return (hash_bytes(items.data(), items.size()) >> 20) % k_slots;
  }

  std::vector<Slot> slots_;
  std::vector<unsigned char> bytes_;
  std::vector<uint32_t> followers_;  // slots, by what came before
  uint32_t last_three_ = 0;          // lists, as one number
};

using PickleLists = ListsByBytes<PickleValue>;

}  // namespace cufit::formats
