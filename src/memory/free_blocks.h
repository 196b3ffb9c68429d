// SPDX-License-Identifier: Apache-2.0
// The free blocks of one pool and stream, ordered by size, then address: PyTorch's std::set with
// BlockComparatorSize as sorted chunks of at most 64 entries. (Blocks come last in the order: a
// recording that contradicts itself may put two at one address.) Real pools hold 5 to 150 on
// average, so that one to three chunks are all, and what counts is the search within one: the sizes
// lie side by side and are compared without a jump.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "memory/block.h"

namespace cufit::memory {

class FreeBlocks {
 public:
  struct Entry {
    uint64_t size;
    uint64_t address;
    BlockIndex block;
  };
  struct Position {
    size_t chunk;
    uint32_t slot;
  };

  bool empty() const { return chunks_.empty(); }
  size_t size() const { return count_; }
  bool at_end(Position position) const { return position.chunk == chunks_.size(); }
  Entry at(Position position) const { return chunks_[position.chunk]->at(position.slot); }
  Position begin() const { return {0, 0}; }
  Position next(Position position) const;  // of a position that is not the end
  // False at the first entry; else steps back. The end may be given.
  bool step_back(Position& position) const;
  // The first entry that is not smaller than (size, address).
  Position lower_bound(uint64_t size, uint64_t address) const { return find({size, address, 0}); }

  void insert(uint64_t size, uint64_t address, BlockIndex block);
  void erase(Position position);
  void erase(uint64_t size, uint64_t address, BlockIndex block) {
    erase(find({size, address, block}));
  }

 private:
  static constexpr uint32_t k_capacity = 64;
  struct Place {
    uint64_t address;
    BlockIndex block;
  };
  struct Chunk {
    Chunk() { sizes.fill(UINT64_MAX); }
    Entry at(uint32_t slot) const {
      return {sizes[slot], places[slot].address, places[slot].block};
    }
    // The first slot that is not before the entry; `count` if none is.
    uint32_t find(const Entry& entry) const;
    void insert(uint32_t slot, const Entry& entry);
    void erase(uint32_t slot);

    std::array<uint64_t, k_capacity> sizes;  // UINT64_MAX beyond `count`
    std::array<Place, k_capacity> places;
    uint32_t count = 0;
  };

  Position find(const Entry& entry) const;
  size_t find_chunk(const Entry& entry) const;
  std::unique_ptr<Chunk> new_chunk();
  void split_chunk(size_t chunk);

  std::vector<std::unique_ptr<Chunk>> chunks_;  // none is empty
  std::unique_ptr<Chunk> spare_;                // the last chunk that became empty
  size_t count_ = 0;
};

}  // namespace cufit::memory
