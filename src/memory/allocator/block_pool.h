// SPDX-License-Identifier: Apache-2.0
// BlockPool: the free blocks of one size class of one pool. PyTorch keeps one set ordered by
// (stream, size, address); here each stream has its own, and Streams knows their order.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/allocator/block.h"
#include "memory/allocator/free_blocks.h"

namespace cufit::memory {

// Streams in the order of their first use, and their order by handle value, which is the order in
// which PyTorch releases blocks.
class Streams {
 public:
  StreamIndex find_or_add(uint64_t value);
  uint64_t value(StreamIndex stream) const { return values_[stream]; }
  const std::vector<StreamIndex>& by_value() const { return by_value_; }

 private:
  std::vector<uint64_t> values_;
  std::vector<StreamIndex> by_value_;
};

struct UnmappedBlock {
  uint64_t address;
  BlockIndex block;
};

struct BlockPool {
  explicit BlockPool(const BlockStore& blocks_of_all) : store(&blocks_of_all) {}

  const BlockStore* store;
  bool is_small = false;
  uint32_t owner = 0;  // index of the PrivatePool; 0: the default pool
  uint64_t get_free_blocks_call_count = 0;
  std::vector<FreeBlocks> blocks;                    // one per stream
  std::vector<std::vector<UnmappedBlock>> unmapped;  // one per stream, by address

  FreeBlocks& free_blocks(StreamIndex stream) {
    while (stream >= blocks.size()) blocks.emplace_back(*store);
    return blocks[stream];
  }
  std::vector<UnmappedBlock>& unmapped_blocks(StreamIndex stream) {
    if (stream >= unmapped.size()) unmapped.resize(stream + 1);
    return unmapped[stream];
  }

  void insert_into_blocks(PoolBlock& block, BlockIndex index) {
    block.gc_count_base = get_free_blocks_call_count;
    free_blocks(block.stream).insert(index);
  }
  // What erase_from_blocks of the block at the position and insert_into_blocks do.
  void replace_in_blocks(FreeBlocks::Position position, PoolBlock& block, BlockIndex index) {
    block.gc_count_base = get_free_blocks_call_count;
    blocks[block.stream].replace(position, index);
  }
  void erase_from_blocks(const PoolBlock& block, BlockIndex index) {
    blocks[block.stream].erase(index);
  }
  void insert_into_unmapped(const PoolBlock& block, BlockIndex index);
  void erase_from_unmapped(const PoolBlock& block, BlockIndex index);
};

// All free blocks in PyTorch's set order: stream value, size, address.
std::vector<BlockIndex> in_set_order(const BlockPool& pool, const Streams& streams);

struct PoolOptions {
  bool no_split = false;       // MemPool(no_split=True)
  bool use_on_oom = false;     // MemPool(use_on_oom=True)
  bool own_allocator = false;  // a MemPool with its own allocator never uses expandable segments
};

// One pair of pools; number 0 is the default one, the others belong to CUDA graphs or MemPools.
struct PrivatePool {
  explicit PrivatePool(const BlockStore& blocks) : small_blocks(blocks), large_blocks(blocks) {}

  BlockPool small_blocks;
  BlockPool large_blocks;
  PoolOptions options;
  int64_t use_count = 0;  // graphs and MemPools that hold it; 0: its segments may go

  BlockPool& for_size(bool small) { return small ? small_blocks : large_blocks; }
};

}  // namespace cufit::memory
