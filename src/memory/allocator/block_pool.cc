// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/block_pool.h"

#include <algorithm>

namespace cufit::memory {
namespace {

bool address_before(const UnmappedBlock& block, uint64_t address) {
  return block.address < address;
}

}  // namespace

StreamIndex Streams::find_or_add(uint64_t value) {
  for (size_t i = 0; i < values_.size(); ++i)
    if (values_[i] == value) return static_cast<StreamIndex>(i);
  const auto added = static_cast<StreamIndex>(values_.size());
  values_.push_back(value);
  auto place = by_value_.begin();
  while (place != by_value_.end() && values_[*place] < value) ++place;
  by_value_.insert(place, added);
  return added;
}

void BlockPool::insert_into_unmapped(const PoolBlock& block, BlockIndex index) {
  std::vector<UnmappedBlock>& list = unmapped_blocks(block.stream);
  list.insert(std::lower_bound(list.begin(), list.end(), block.ptr, address_before),
              {block.ptr, index});
}

void BlockPool::erase_from_unmapped(const PoolBlock& block, BlockIndex index) {
  std::vector<UnmappedBlock>& list = unmapped[block.stream];
  auto found = std::lower_bound(list.begin(), list.end(), block.ptr, address_before);
  while (found->block != index) ++found;  // two at one address: see free_blocks.h
  list.erase(found);
}

std::vector<BlockIndex> in_set_order(const BlockPool& pool, const Streams& streams) {
  std::vector<BlockIndex> order;
  for (StreamIndex stream : streams.by_value()) {
    if (stream >= pool.blocks.size()) continue;
    const FreeBlocks& blocks = pool.blocks[stream];
    for (auto at = blocks.begin(); !blocks.at_end(at); at = blocks.next(at))
      order.push_back(blocks.at(at));
  }
  return order;
}

}  // namespace cufit::memory
