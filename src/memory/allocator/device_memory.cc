// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/device_memory.h"

#include <algorithm>

#include "memory/allocator/rounding.h"

namespace cufit::memory {

bool SyntheticMemory::take(uint64_t size) {
  const uint64_t bytes = round_up(size, k_round_large);  // the driver's own granularity
  if (capacity_ != 0 && (bytes > capacity_ || used_ > capacity_ - bytes)) return false;
  used_ += bytes;
  return true;
}

uint64_t SyntheticMemory::place(uint64_t size) {
  const uint64_t bytes = round_up(size, k_round_large);
  if (order_ == Order::driver) return space_.place(bytes);
  if (order_ == Order::descending) return next_ -= bytes;
  const uint64_t address = next_;
  next_ += bytes;
  return address;
}

std::optional<uint64_t> SyntheticMemory::cuda_malloc(uint64_t size) {
  if (!take(size)) return std::nullopt;
  return place(size);
}

void SyntheticMemory::leave(uint64_t address, uint64_t size) {
  if (order_ == Order::driver) space_.release(address, round_up(size, k_round_large));
}

void SyntheticMemory::cuda_free(uint64_t address, uint64_t size) {
  used_ -= round_up(size, k_round_large);
  leave(address, size);
}

bool SyntheticMemory::map(uint64_t, uint64_t size) { return take(size); }

void SyntheticMemory::unmap(uint64_t, uint64_t size) { used_ -= round_up(size, k_round_large); }

void RecordedMemory::open_window(size_t end, bool ends_in_oom) {
  window_ = std::min(end, calls_.size());
  ends_in_oom_ = ends_in_oom;
}

// Leaves out what the model did not do.
void RecordedMemory::close_window() {
  for (; next_ < window_; ++next_) differ();
}

const RecordedCall* RecordedMemory::upcoming() const {
  return next_ < window_ ? &calls_[next_] : nullptr;
}

const RecordedCall* RecordedMemory::upcoming(RecordedCall::Kind kind) const {
  const RecordedCall* call = upcoming();
  return call != nullptr && call->kind == kind ? call : nullptr;
}

std::optional<uint64_t> RecordedMemory::released_next() const {
  const RecordedCall* call = upcoming(RecordedCall::Kind::segment_free);
  if (call == nullptr) call = upcoming(RecordedCall::Kind::segment_unmap);
  if (call == nullptr) return std::nullopt;
  return call->address;
}

bool RecordedMemory::fails() {
  const bool failed = upcoming() == nullptr ? ends_in_oom_ : released_next().has_value();
  failures_ += failed ? 1 : 0;
  return failed;
}

void RecordedMemory::differ() {
  if (!first_difference_) first_difference_ = next_;
  ++differing_;
}

uint64_t RecordedMemory::spare(uint64_t size) {
  const uint64_t address = spare_;
  spare_ += round_up(size, k_round_large);
  return address;
}

bool RecordedMemory::consume(RecordedCall::Kind kind, uint64_t address, uint64_t size) {
  const RecordedCall* call = upcoming(kind);
  if (call == nullptr || call->address != address || call->size != size) {
    differ();
    return false;
  }
  ++next_;
  ++matched_;
  return true;
}

std::optional<uint64_t> RecordedMemory::cuda_malloc(uint64_t size) {
  if (fails()) return std::nullopt;
  const RecordedCall* call = upcoming(RecordedCall::Kind::segment_alloc);
  if (call == nullptr || call->size != size) {
    differ();
    return spare(size);
  }
  ++next_;
  ++matched_;
  return call->address;
}

void RecordedMemory::cuda_free(uint64_t address, uint64_t size) {
  consume(RecordedCall::Kind::segment_free, address, size);
}

uint64_t RecordedMemory::reserve(uint64_t size) {
  // The reservation is not recorded; its first pages are mapped at its start, next or after what a
  // first attempt that fails releases.
  for (size_t i = next_; i < window_; ++i)
    if (calls_[i].kind == RecordedCall::Kind::segment_map) return calls_[i].address;
  return spare(size);
}

bool RecordedMemory::map(uint64_t address, uint64_t size) {
  if (fails()) return false;
  consume(RecordedCall::Kind::segment_map, address, size);
  return true;
}

void RecordedMemory::unmap(uint64_t address, uint64_t size) {
  consume(RecordedCall::Kind::segment_unmap, address, size);
}

}  // namespace cufit::memory
