// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/address_space.h"

#include <algorithm>
#include <iterator>

#include "memory/allocator/rounding.h"

namespace cufit::memory {
namespace {

using Ranges = AddressSpace::Ranges;

// The size of the range that it became.
uint64_t add(Ranges& ranges, uint64_t address, uint64_t size) {
  auto after = ranges.upper_bound(address);
  if (after != ranges.end() && address + size == after->first) {
    size += after->second;
    after = ranges.erase(after);
  }
  if (after != ranges.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == address) {
      return before->second += size;
    }
  }
  return ranges[address] = size;
}

// The first range that ends behind the address.
template <typename Map>
auto first_behind(Map& ranges, uint64_t address) {
  auto at = ranges.upper_bound(address);
  if (at == ranges.begin()) return at;
  const auto before = std::prev(at);
  return before->first + before->second > address ? before : at;
}

void subtract(Ranges& ranges, uint64_t address, uint64_t size) {
  const uint64_t end = address + size;
  for (auto at = first_behind(ranges, address); at != ranges.end() && at->first < end;) {
    const uint64_t from = at->first, to = at->first + at->second;
    at = ranges.erase(at);
    if (from < address) ranges[from] = address - from;
    if (to > end) ranges[end] = to - end;
  }
}

void subtract_all(Ranges& ranges, const Ranges& others) {
  if (ranges.empty()) return;
  const uint64_t from = ranges.begin()->first;
  const uint64_t to = ranges.rbegin()->first + ranges.rbegin()->second;
  for (auto at = first_behind(others, from); at != others.end() && at->first < to; ++at)
    subtract(ranges, at->first, at->second);
}

}  // namespace

Ranges::const_iterator AddressSpace::fitting_rest(uint64_t size) const {
  if (size > most_rest_) return rests_.end();
  uint64_t most = 0;
  for (auto rest = rests_.begin(); rest != rests_.end(); ++rest) {
    if (rest->second >= size) return rest;
    most = std::max(most, rest->second);
  }
  most_rest_ = most;
  return rests_.end();
}

Ranges::const_iterator AddressSpace::fitting_gap(uint64_t granules) const {
  auto gap = gaps_.end();
  while (gap != gaps_.begin())
    if ((--gap)->second >= granules) return gap;
  return gaps_.end();
}

void AddressSpace::take_from(Ranges::const_iterator rest, uint64_t size) {
  const auto [address, bytes] = *rest;
  rests_.erase(rest);
  if (bytes > size) rests_[address + size] = bytes - size;
}

void AddressSpace::add_rest(uint64_t address, uint64_t size) {
  most_rest_ = std::max(most_rest_, add(rests_, address, size));
}

uint64_t AddressSpace::peek(uint64_t size) const {
  const auto rest = fitting_rest(size);
  return rest != rests_.end() ? rest->first : peek_granules(round_up(size, k_granule));
}

uint64_t AddressSpace::peek_granules(uint64_t granules) const {
  const auto gap = fitting_gap(granules);
  if (gap != gaps_.end()) return gap->first + gap->second - granules;
  return low_ > granules ? low_ - granules : high_;
}

uint64_t AddressSpace::place(uint64_t size) {
  const auto rest = fitting_rest(size);
  uint64_t address = 0;
  if (rest != rests_.end()) {
    address = rest->first;
    take_from(rest, size);
  } else {
    const uint64_t granules = round_up(size, k_granule);
    address = peek_granules(granules);
    if (address < low_) {
      low_ = address;
    } else if (address == high_) {
      high_ += granules;
    } else {
      take_granules(granules);
    }
    subtract(chunks_, address, granules);
    chunks_[address] = granules;
    if (granules > size) add_rest(address + size, granules - size);
  }
  used_[address] = size;
  return address;
}

void AddressSpace::release(uint64_t address, uint64_t size) {
  used_.erase(address);
  add_rest(address, size);
  return_granules(address);
}

// Granules that were taken together can be taken anew when all of them are free.
void AddressSpace::return_granules(uint64_t address) {
  const auto after = chunks_.upper_bound(address);
  if (after == chunks_.begin()) return;
  const auto chunk = std::prev(after);
  const auto [begin, size] = *chunk;
  const auto found = std::prev(rests_.upper_bound(address));
  const auto [from, bytes] = *found;
  if (from > begin || from + bytes < begin + size) return;
  chunks_.erase(chunk);
  subtract(rests_, begin, size);
  add(gaps_, begin, size);
  // What lies next to the unused space is part of it.
  const auto lowest = gaps_.begin();
  if (lowest->first != low_) return;
  low_ += lowest->second;
  gaps_.erase(lowest);
}

void AddressSpace::open_in(Ranges& ranges, uint64_t address, uint64_t size) {
  low_ = std::min(low_, address / k_granule * k_granule);
  Ranges opened = {{address, size}};
  for (const Ranges* known : {&used_, &rests_, &gaps_}) subtract_all(opened, *known);
  for (const auto& [from, bytes] : opened) {
    const uint64_t became = add(ranges, from, bytes);
    if (&ranges == &rests_) most_rest_ = std::max(most_rest_, became);
  }
}

void AddressSpace::open(uint64_t address, uint64_t size) { open_in(rests_, address, size); }

void AddressSpace::open_granules(uint64_t address, uint64_t size) { open_in(gaps_, address, size); }

void AddressSpace::close(uint64_t address, uint64_t size) {
  subtract(rests_, address, size);
  subtract(gaps_, address, size);
}

void AddressSpace::take(uint64_t size) {
  const auto rest = fitting_rest(size);
  if (rest != rests_.end()) take_from(rest, size);
}

void AddressSpace::take_granules(uint64_t size) {
  const auto gap = fitting_gap(size);
  if (gap == gaps_.end()) return;
  const auto [address, bytes] = *gap;
  gaps_.erase(gap);
  if (bytes > size) gaps_[address] = bytes - size;
}

void AddressSpace::descend(uint64_t size) {
  if (size < low_) low_ -= size;
}

}  // namespace cufit::memory
