// SPDX-License-Identifier: Apache-2.0
#include "memory/address_space.h"

#include <iterator>

#include "memory/rounding.h"

namespace cufit::memory {

void AddressSpace::add(Ranges& ranges, uint64_t address, uint64_t size) {
  auto after = ranges.upper_bound(address);
  if (after != ranges.end() && address + size == after->first) {
    size += after->second;
    after = ranges.erase(after);
  }
  if (after != ranges.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == address) {
      before->second += size;
      return;
    }
  }
  ranges[address] = size;
}

uint64_t AddressSpace::place(uint64_t size) {
  for (auto rest = rests_.begin(); rest != rests_.end(); ++rest) {
    if (rest->second < size) continue;
    const uint64_t address = rest->first;
    const uint64_t left = rest->second - size;
    rests_.erase(rest);
    if (left > 0) rests_[address + size] = left;
    return address;
  }
  const uint64_t granules = round_up(size, k_granule);
  uint64_t address = low_ - granules;
  auto gap = gaps_.end();
  while (gap != gaps_.begin()) {
    --gap;
    if (gap->second < granules) continue;
    gap->second -= granules;
    address = gap->first + gap->second;
    if (gap->second == 0) gaps_.erase(gap);
    break;
  }
  if (address < low_) low_ = address;
  if (granules > size) add(rests_, address + size, granules - size);
  return address;
}

void AddressSpace::release(uint64_t address, uint64_t size) {
  add(rests_, address, size);
  return_granules(address);
}

// Whole granules of the free range around `address` can be taken anew.
void AddressSpace::return_granules(uint64_t address) {
  const auto found = std::prev(rests_.upper_bound(address));
  const uint64_t begin = found->first;
  const uint64_t end = begin + found->second;
  const uint64_t from = round_up(begin, k_granule);
  const uint64_t to = end / k_granule * k_granule;
  if (from >= to) return;
  rests_.erase(found);
  if (begin < from) rests_[begin] = from - begin;
  if (to < end) rests_[to] = end - to;
  add(gaps_, from, to - from);
}

}  // namespace cufit::memory
