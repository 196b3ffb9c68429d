// SPDX-License-Identifier: Apache-2.0
// The free blocks of one pool and stream, ordered by size, then address: PyTorch's std::set with
// BlockComparatorSize. (Blocks come last in the order: a recording that contradicts itself may put
// two at one address.) Real pools hold 30 to 180 on average, and nine of ten that come in are the
// smallest of their size class, eight of which a doubling has: so each class is a short sorted
// array, and a bit tells which are not empty. Only where more than k_most_slots are of one class a
// set holds them. Up to k_few blocks are in one array, since there may be many pools.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "memory/allocator/block.h"

namespace cufit::memory {

class FreeBlocks {
 public:
  class Position {
   public:
    Position() = default;

   private:
    friend class FreeBlocks;
    Position(uint32_t run, uint32_t slot) : run_(run), slot_(slot) {}
    uint32_t run_ = 0, slot_ = 0;  // where the run is a set, the block
  };

  // Reads sizes and addresses of blocks there; they do not change while they are here.
  explicit FreeBlocks(const BlockStore& store);
  FreeBlocks(FreeBlocks&&) noexcept;
  ~FreeBlocks();

  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }
  Position begin() const { return first_from(0); }
  Position end() const { return {k_classes, 0}; }
  bool at_end(Position position) const { return position.run_ == k_classes; }
  BlockIndex at(Position position) const {
    const Run& in = run(position.run_);
    return in.many ? position.slot_ : in.slots[position.slot_].block;
  }
  Position next(Position position) const;  // of a position that is not the end
  // False at the first entry; else steps back. The end may be given.
  bool step_back(Position& position) const;
  // The first entry that is not smaller than (size, address).
  Position lower_bound(uint64_t size, uint64_t address) const;

  void insert(BlockIndex block);
  void erase(Position position);
  void erase(BlockIndex block) { erase(find(block)); }
  Position find(BlockIndex block) const;  // of one that is here
  // As erase(position) and insert(block). The block may be the one there, with another size or
  // address.
  void replace(Position position, BlockIndex block) {
    erase(position);
    insert(block);
  }

 private:
  // Sizes from 480 GiB on are of the last class.
  static constexpr uint32_t k_classes = 8 * 27;
  static constexpr size_t k_few = 16, k_most_slots = 512;

  struct Slot {
    uint64_t order;
    BlockIndex block;
  };
  // A block, or a place where one could be.
  struct Entry {
    uint64_t order;
    uint64_t size;
    uint64_t address;
    BlockIndex block;
  };
  struct Many;
  struct Run {
    std::vector<Slot> slots;  // sorted
    std::unique_ptr<Many> many;
  };
  struct Classes {
    std::array<Run, k_classes> runs;
    std::array<uint64_t, (k_classes + 63) / 64> filled{};  // one bit each
  };

  // How many times the size doubles, and the three bits behind the highest one.
  static uint32_t class_of(uint64_t size) {
    const uint64_t number = (size >> 9) + 8;
    const auto doublings = static_cast<uint32_t>(std::bit_width(number)) - 4;
    const auto eighth = static_cast<uint32_t>(number >> doublings & 7);
    return std::min(8 * doublings + eighth, k_classes - 1);
  }
  // Size and address as one number that never decreases along the order: in units of 512 bytes, 26
  // and 38 bits. Where it is equal they are compared whole: blocks from 32 GiB on, and what is no
  // multiple.
  static uint64_t order_of(uint64_t size, uint64_t address) {
    constexpr uint64_t most = (uint64_t{1} << 38) - 1;
    if (size >= uint64_t{1} << 35) return UINT64_MAX;
    const uint64_t place = address >> 9;
    return (size >> 9) << 38 | ((size & 511) != 0 || place > most ? most : place);
  }
  Entry entry_of(BlockIndex block) const {
    const PoolBlock& at = (*store_)[block];
    return {order_of(at.size, at.ptr), at.size, at.ptr, block};
  }
  bool is_before(const Slot& slot, const Entry& entry) const {
    return slot.order != entry.order ? slot.order < entry.order : is_before(slot.block, entry);
  }
  bool is_before(BlockIndex block, const Entry& entry) const;

  uint32_t run_of(uint64_t size) const { return classes_ ? class_of(size) : 0; }
  const Run& run(uint32_t number) const { return classes_ ? classes_->runs[number] : few_; }
  size_t slot_for(const std::vector<Slot>& slots, const Entry& entry) const;
  Position first_from(uint32_t run) const;
  void insert_into(Run& run, const Entry& entry);
  void make_classes();

  const BlockStore* store_;
  size_t count_ = 0;
  Run few_;  // run 0 as long as there are no classes
  std::unique_ptr<Classes> classes_;
};

}  // namespace cufit::memory
