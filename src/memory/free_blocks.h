// SPDX-License-Identifier: Apache-2.0
// The free blocks of one pool and stream, ordered by size, then address: PyTorch's std::set with
// BlockComparatorSize as sorted chunks of at most 64 entries. (Blocks come last in the order: a
// recording that contradicts itself may put two at one address.) Real pools hold 5 to 150 on
// average, so that one to three chunks are all, and what counts is the search within one: size and
// address are one number, and numbers are compared without a jump.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "memory/block.h"

namespace cufit::memory {

class FreeBlocks {
  static constexpr uint32_t k_capacity = 64;

 public:
  // One number: two that are written one by one and read at once make the processor wait.
  class Position {
   public:
    Position() = default;
    Position(size_t chunk, uint32_t slot)
        : number_(static_cast<uint32_t>(chunk) * k_capacity + slot) {}
    uint32_t chunk() const { return number_ / k_capacity; }
    uint32_t slot() const { return number_ % k_capacity; }

   private:
    uint32_t number_ = 0;
  };

  // Reads sizes and addresses of blocks there; they do not change while they are here.
  explicit FreeBlocks(const BlockStore& store) : store_(&store) {}

  bool empty() const { return chunks_.empty(); }
  size_t size() const { return count_; }
  bool at_end(Position position) const { return position.chunk() == chunks_.size(); }
  Position end() const { return {chunks_.size(), 0}; }
  BlockIndex at(Position position) const { return slot(position).block; }
  Position begin() const { return {0, 0}; }
  Position next(Position position) const;  // of a position that is not the end
  // False at the first entry; else steps back. The end may be given.
  bool step_back(Position& position) const;
  // The first entry that is not smaller than (size, address).
  Position lower_bound(uint64_t size, uint64_t address) const {
    return find({order_of(size, address), size, address, 0});
  }

  void insert(BlockIndex block);
  void erase(Position position);
  void erase(BlockIndex block) { erase(find(block)); }
  Position find(BlockIndex block) const;  // of one that is here
  // As erase(position) and insert(block), but that only what lies between the two places moves. The
  // block may be the one there, with another size or address.
  void replace(Position position, BlockIndex block);

 private:
  struct Entry {
    uint64_t order;
    uint64_t size;
    uint64_t address;
    BlockIndex block;
  };
  struct Slot {
    uint64_t order;
    BlockIndex block;
  };
  struct Chunk {
    Chunk() { slots.fill({UINT64_MAX, k_none}); }
    uint32_t find(uint64_t order) const;  // the first slot that is not before it; or k_capacity
    void insert(uint32_t slot, Slot entry);
    void erase(uint32_t slot);
    uint32_t move(uint32_t from, Slot entry);  // erases one and inserts another; where it is then
    uint64_t last() const { return slots[count - 1].order; }

    std::array<Slot, k_capacity> slots;  // beyond `count` the order is UINT64_MAX
    uint32_t count = 0;
  };

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

  const Slot& slot(Position position) const {
    return chunks_[position.chunk()]->slots[position.slot()];
  }
  Position find_order(uint64_t order) const;
  Position find(const Entry& entry) const;
  Position find_whole(const Entry& entry) const;
  uint32_t find_chunk(uint64_t order) const;
  std::unique_ptr<Chunk> new_chunk();
  void split_chunk(uint32_t chunk);

  const BlockStore* store_;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // none is empty
  std::vector<uint64_t> lasts_;                 // the last order of each
  std::unique_ptr<Chunk> spare_;                // the last chunk that became empty
  size_t count_ = 0;
};

}  // namespace cufit::memory
