// SPDX-License-Identifier: Apache-2.0
// The device below the allocator: where cudaMalloc places a segment and when it fails. A what-if
// replay uses SyntheticMemory; a replay that checks itself against a recording feeds the recorded
// addresses and failures back (RecordedMemory).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "memory/allocator/address_space.h"

namespace cufit::memory {

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual std::optional<uint64_t> cuda_malloc(uint64_t size) = 0;
  virtual void cuda_free(uint64_t address, uint64_t size) = 0;
  // Address space for an expandable segment; costs no memory.
  virtual uint64_t reserve(uint64_t size) = 0;
  virtual void unreserve(uint64_t address, uint64_t size) = 0;
  // Pages of it: cuMemCreate and cuMemMap for all of the range, or false and none.
  virtual bool map(uint64_t address, uint64_t size) = 0;
  virtual void unmap(uint64_t address, uint64_t size) = 0;
};

// As the driver does it (address_space.h), or one after the other without gaps or reuse. Descending
// is near to the driver and simple; on recorded H200 traces ascending gave a peak of up to 0.7 %
// too much. Where the orders differ in their result, the spread shows how far a prediction can be
// off.
class SyntheticMemory : public DeviceMemory {
 public:
  enum class Order { driver, descending, ascending };
  // `capacity`: bytes that the allocator can get in all; 0: no bound.
  explicit SyntheticMemory(uint64_t capacity = 0, Order order = Order::driver)
      : capacity_(capacity), order_(order) {}

  std::optional<uint64_t> cuda_malloc(uint64_t size) override;
  void cuda_free(uint64_t address, uint64_t size) override;
  uint64_t reserve(uint64_t size) override { return place(size); }
  void unreserve(uint64_t address, uint64_t size) override { leave(address, size); }
  bool map(uint64_t address, uint64_t size) override;
  void unmap(uint64_t address, uint64_t size) override;
  uint64_t used() const { return used_; }
  // Order::driver: the space as a recorded run found it.
  AddressSpace& space() { return space_; }

 private:
  bool take(uint64_t size);
  uint64_t place(uint64_t size);
  void leave(uint64_t address, uint64_t size);

  AddressSpace space_;
  uint64_t capacity_;
  Order order_;
  uint64_t used_ = 0;
  uint64_t next_ = uint64_t{1} << 46;  // the middle of a 47-bit address space
};

struct RecordedCall {
  enum class Kind : uint8_t { segment_alloc, segment_free, segment_map, segment_unmap };
  Kind kind;
  uint64_t address;
  uint64_t size;
};

// Plays recorded segment events back: a driver call succeeds when the recording has the same call
// at this point, and fails when it has none or a release, which PyTorch does only after a failure.
// The replay opens a window of events for each request; calls that differ are counted and answered
// from an address range of their own, so that the replay can go on.
class RecordedMemory : public DeviceMemory {
 public:
  explicit RecordedMemory(std::vector<RecordedCall> calls) : calls_(std::move(calls)) {}

  // Events up to `end` belong to the request that comes now.
  void open_window(size_t end, bool ends_in_oom);
  std::optional<uint64_t> released_next() const;  // the address, if the next event is a release
  size_t consumed() const { return next_; }
  // Leaves out what the model did not do, up to the end of the window.
  void close_window();
  size_t matched() const { return matched_; }
  size_t differing() const { return differing_; }
  std::optional<size_t> first_difference() const { return first_difference_; }
  size_t failures() const { return failures_; }  // of calls, as in the recorded run

  std::optional<uint64_t> cuda_malloc(uint64_t size) override;
  void cuda_free(uint64_t address, uint64_t size) override;
  uint64_t reserve(uint64_t size) override;
  void unreserve(uint64_t, uint64_t) override {}
  bool map(uint64_t address, uint64_t size) override;
  void unmap(uint64_t address, uint64_t size) override;

 private:
  const RecordedCall* upcoming() const;
  const RecordedCall* upcoming(RecordedCall::Kind kind) const;
  bool fails();
  uint64_t spare(uint64_t size);
  bool consume(RecordedCall::Kind kind, uint64_t address, uint64_t size);
  void differ();

  std::vector<RecordedCall> calls_;
  size_t next_ = 0;
  size_t window_ = 0;
  bool ends_in_oom_ = false;
  size_t failures_ = 0;
  size_t matched_ = 0;
  size_t differing_ = 0;
  std::optional<size_t> first_difference_;
  uint64_t spare_ = uint64_t{1} << 60;  // beyond any device address
};

}  // namespace cufit::memory
