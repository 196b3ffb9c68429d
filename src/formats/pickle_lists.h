// SPDX-License-Identifier: Apache-2.0
// Lists that came before, by the bytes of their items: of a million stacks in a file some hundred
// differ, and each is up to a hundred GETs. A program does in every step what it did in the step
// before, so that the list that followed this one last time mostly follows again: then comparing
// its bytes is all. Used by pickle_machine.h and pickle_row_scan.h only.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "formats/pickle.h"
#include "formats/text_pool.h"

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
    const uint32_t next = slots_[last_].next;
    Slot& slot = slots_[next];
    const bool same = slot.size != 0 && slot.size < text.size() && text[slot.size] == end &&
                      std::memcmp(bytes_.data() + slot.begin, text.data(), slot.size) == 0;
    if (!same) return {};
    last_ = next;
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
    if (slots_.empty()) slots_.resize(k_slots);
    const size_t place = place_of(items);
    slots_[place] = {static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(items.size()), 0,
                     value};
    follow(place);
    bytes_.insert(bytes_.end(), items.begin(), items.end());
  }

 private:
  static constexpr size_t k_slots = 4096, k_bytes = 8u << 20;
  struct Slot {
    uint32_t begin = 0, size = 0;  // in bytes_; 0: free
    uint32_t next = 0;             // the slot of the list that came after it
    Value value;
  };
  void forget() {
    slots_.clear();
    bytes_.clear();
    last_ = 0;
  }
  void follow(size_t place) {
    slots_[last_].next = static_cast<uint32_t>(place);
    last_ = static_cast<uint32_t>(place);
  }
  static size_t place_of(Bytes items) {
    return (hash_bytes(items.data(), items.size()) >> 20) % k_slots;
  }

  std::vector<Slot> slots_;
  std::vector<unsigned char> bytes_;
  uint32_t last_ = 0;  // the slot of the last list
};

using PickleLists = ListsByBytes<PickleValue>;

}  // namespace cufit::formats
