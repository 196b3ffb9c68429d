// SPDX-License-Identifier: Apache-2.0
// Lists that came before, by the bytes of their items: of a million stacks in a file some hundred
// differ, and each is up to a hundred GETs. Used by pickle_machine.h only.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "formats/pickle.h"
#include "formats/text_pool.h"

namespace cufit::formats {

// Keeps what it can find again cheaply, and forgets the rest: 4096 lists, 8 MiB of bytes together.
class PickleLists {
 public:
  using Bytes = std::span<const unsigned char>;

  const PickleValue* find(Bytes items) {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[place_of(items)];
    const bool same = slot.size == items.size() && slot.size != 0 &&
                      std::memcmp(bytes_.data() + slot.begin, items.data(), items.size()) == 0;
    return same ? &slot.value : nullptr;
  }

  void keep(Bytes items, const PickleValue& value) {
    if (items.size() > k_bytes / 16) return;
    if (bytes_.size() + items.size() > k_bytes) forget();
    if (slots_.empty()) slots_.resize(k_slots);
    slots_[place_of(items)] = {static_cast<uint32_t>(bytes_.size()),
                               static_cast<uint32_t>(items.size()), value};
    bytes_.insert(bytes_.end(), items.begin(), items.end());
  }

 private:
  static constexpr size_t k_slots = 4096, k_bytes = 8u << 20;
  struct Slot {
    uint32_t begin = 0, size = 0;  // in bytes_; 0: free
    PickleValue value;
  };
  void forget() {
    slots_.clear();
    bytes_.clear();
  }
  static size_t place_of(Bytes items) {
    return (hash_bytes(items.data(), items.size()) >> 20) % k_slots;
  }

  std::vector<Slot> slots_;
  std::vector<unsigned char> bytes_;
};

}  // namespace cufit::formats
