// SPDX-License-Identifier: Apache-2.0
// What is known of an address, for a trace's millions of look-ups: a table with one probe in nearly
// all cases and no allocation for each entry, where a std::unordered_map has both. Used by
// replay_program.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cufit::memory {

class AddressMap {
 public:
  struct Entry {
    uint64_t address = 0;
    uint32_t value = 0;
    bool mark = false;
    bool used = false;  // the table's own affair
  };

  AddressMap() : slots_(k_least) {}

  // Null where the address is not there. Holds until the next insertion or erasure.
  Entry* find(uint64_t address) {
    for (size_t at = home(address);; at = (at + 1) & mask()) {
      Entry& slot = slots_[at];
      if (!slot.used) return nullptr;
      if (slot.address == address) return &slot;
    }
  }

  // The entry of the address, made if it was not there; `is_new` says which.
  Entry& find_or_add(uint64_t address, bool& is_new) {
    if (4 * (count_ + 1) > slots_.size()) grow();
    size_t at = home(address);
    for (; slots_[at].used; at = (at + 1) & mask())
      if (slots_[at].address == address) {
        is_new = false;
        return slots_[at];
      }
    is_new = true;
    ++count_;
    slots_[at] = {address, 0, false, true};
    return slots_[at];
  }

  // An entry that find() returned. Those behind it that were displaced move up, so that no mark of
  // deleted ones is needed.
  void erase(const Entry* entry) {
    size_t hole = static_cast<size_t>(entry - slots_.data());
    --count_;
    for (size_t at = (hole + 1) & mask(); slots_[at].used; at = (at + 1) & mask()) {
      const size_t from_home = (at - home(slots_[at].address)) & mask();
      if (from_home < ((at - hole) & mask())) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole].used = false;
  }

  size_t size() const { return count_; }

 private:
  static constexpr size_t k_least = 1024;

  size_t mask() const { return slots_.size() - 1; }
  // Addresses are multiples of 512 that lie close together: the product spreads them over the upper
  // bits, of which the table takes as many as it needs.
  size_t home(uint64_t address) const {
    return static_cast<size_t>((address * 0x9e3779b97f4a7c15u) >> 32) & mask();
  }
  void grow() {
    std::vector<Entry> old(2 * slots_.size());
    old.swap(slots_);
    for (const Entry& entry : old) {
      if (!entry.used) continue;
      size_t at = home(entry.address);
      while (slots_[at].used) at = (at + 1) & mask();
      slots_[at] = entry;
    }
  }

  std::vector<Entry> slots_;  // a power of two; at most a quarter of them in use
  size_t count_ = 0;
};

}  // namespace cufit::memory
