// SPDX-License-Identifier: Apache-2.0
// The free blocks of one pool and stream, ordered by size, then address: PyTorch's std::set with
// BlockComparatorSize as sorted chunks of at most 64 entries. (Blocks come last in the order: a
// recording that contradicts itself may put two at one address.) Finding one is two binary
// searches, and inserting moves at most 1.5 KiB, however many blocks there are.
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
  const Entry& at(Position position) const {
    return chunks_[position.chunk]->entries[position.slot];
  }
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
  struct Chunk {
    uint32_t count = 0;
    std::array<Entry, k_capacity> entries;
  };

  Position find(const Entry& entry) const;
  size_t find_chunk(const Entry& entry) const;
  std::unique_ptr<Chunk> new_chunk();
  void split_chunk(size_t chunk);
  void set_last(size_t chunk);

  std::vector<std::unique_ptr<Chunk>> chunks_;  // none is empty
  std::vector<Entry> last_;                     // the last entry of each chunk, side by side
  std::unique_ptr<Chunk> spare_;                // the last chunk that became empty
  size_t count_ = 0;
};

}  // namespace cufit::memory
