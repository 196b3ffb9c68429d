// SPDX-License-Identifier: Apache-2.0
// Where the CUDA driver places what cudaMalloc returns. Observed on recorded H200 traces (driver
// 580.159): address space is taken in granules of 32 MiB from the top of the highest gap that is
// large enough, the rest of the last granule stays, and a later segment that fits into such a rest
// is placed in the lowest one. What lies otherwise is explained by the driver's own allocations and
// by ranges that it gave free, which placement.h finds in a recording and puts in here. It matters
// because of several equally large free blocks the allocator takes the one at the lowest address.
#pragma once

#include <cstdint>
#include <map>

namespace cufit::memory {

class AddressSpace {
 public:
  using Ranges = std::map<uint64_t, uint64_t>;  // address to size
  static constexpr uint64_t k_granule = uint64_t{32} << 20;

  explicit AddressSpace(uint64_t top = uint64_t{1} << 46) : low_(top) {}

  uint64_t place(uint64_t size);
  uint64_t peek(uint64_t size) const;  // where place would put it
  void release(uint64_t address, uint64_t size);
  // A segment that is there already.
  void occupy(uint64_t address, uint64_t size) { used_[address] = size; }

  // What others in the process do: a range becomes free, to be filled from below (open) or from
  // above (open_granules); it is no longer free (close); the driver takes the lowest rest of that
  // size (take), granules of the highest gap (take_granules) or everything down to some address
  // (descend). Where there is no such thing nothing happens.
  void open(uint64_t address, uint64_t size);
  void open_granules(uint64_t address, uint64_t size);
  void close(uint64_t address, uint64_t size);
  void take(uint64_t size);
  void take_granules(uint64_t size);
  void descend(uint64_t size);

  const Ranges& rests() const { return rests_; }
  const Ranges& gaps() const { return gaps_; }
  const Ranges& used() const { return used_; }
  uint64_t low() const { return low_; }

 private:
  Ranges::const_iterator fitting_rest(uint64_t size) const;
  uint64_t peek_granules(uint64_t granules) const;
  void add_rest(uint64_t address, uint64_t size);
  Ranges::const_iterator fitting_gap(uint64_t granules) const;
  void take_from(Ranges::const_iterator rest, uint64_t size);
  void open_in(Ranges& ranges, uint64_t address, uint64_t size);
  void return_granules(uint64_t address);

  Ranges rests_;                             // free parts of granules that are in use
  mutable uint64_t most_rest_ = UINT64_MAX;  // no rest is larger; as the last search found
  Ranges gaps_;                              // granules that were in use before
  Ranges used_;                              // segments
  Ranges chunks_;                            // granules that were taken together
  uint64_t low_;                             // below it nothing was used yet
  // Where segments go, upwards, if there is no room below.
  uint64_t high_ = uint64_t{1} << 61;
};

}  // namespace cufit::memory
