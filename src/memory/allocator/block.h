// SPDX-License-Identifier: Apache-2.0
// Blocks of segments and the slab that holds them. A block is named by its index; slots are used
// again, so whoever keeps a name across other calls keeps a BlockHandle, whose serial number tells
// a later allocation in the same slot apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cufit::memory {

struct BlockPool;
using BlockIndex = uint32_t;
using StreamIndex = uint32_t;  // in the allocator's list of streams
constexpr uint32_t k_none = UINT32_MAX;

enum class BlockUse : uint8_t {
  inactive,
  allocated,
  pending_free,  // freed by the program, waiting for events of other streams
};

struct PoolBlock {
  uint64_t ptr = 0;
  uint64_t size = 0;
  uint64_t requested_size = 0;
  uint64_t gc_count_base = 0;  // calls of the pool's get_free_block when it was last inserted
  BlockPool* pool = nullptr;
  BlockIndex prev = k_none;  // neighbours in the segment
  BlockIndex next = k_none;
  StreamIndex stream = 0;
  uint32_t expandable_segment = k_none;
  uint32_t serial = 0;  // number of the allocation that lives or lived here
  BlockUse state = BlockUse::inactive;
  bool mapped = true;          // false: address space of an expandable segment without memory
  bool other_streams = false;  // record_stream named a stream that is not its own
  bool in_use = false;         // the slot holds a block

  bool is_split() const { return prev != k_none || next != k_none; }
};

struct BlockHandle {
  BlockIndex block = k_none;
  uint32_t serial = 0;
  explicit operator bool() const { return block != k_none; }
};

class BlockStore {
 public:
  BlockIndex create() {
    if (free_.empty()) {
      slots_.emplace_back();
      slots_.back().in_use = true;
      return static_cast<BlockIndex>(slots_.size() - 1);
    }
    const BlockIndex index = free_.back();
    free_.pop_back();
    slots_[index] = PoolBlock();
    slots_[index].in_use = true;
    return index;
  }
  void destroy(BlockIndex index) {
    slots_[index].in_use = false;
    free_.push_back(index);
  }
  PoolBlock& operator[](BlockIndex index) { return slots_[index]; }
  const PoolBlock& operator[](BlockIndex index) const { return slots_[index]; }
  size_t slots() const { return slots_.size(); }

 private:
  std::vector<PoolBlock> slots_;
  std::vector<BlockIndex> free_;
};

}  // namespace cufit::memory
