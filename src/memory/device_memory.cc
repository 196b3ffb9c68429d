// SPDX-License-Identifier: Apache-2.0
#include "memory/device_memory.h"

#include "memory/rounding.h"

namespace cufit::memory {

bool SyntheticMemory::take(uint64_t size) {
  const uint64_t bytes = round_up(size, k_round_large);  // the driver's own granularity
  if (capacity_ != 0 && (bytes > capacity_ || used_ > capacity_ - bytes)) return false;
  used_ += bytes;
  return true;
}

uint64_t SyntheticMemory::place(uint64_t size) {
  const uint64_t bytes = round_up(size, k_round_large);
  if (order_ == Order::descending) return next_ -= bytes;
  const uint64_t address = next_;
  next_ += bytes;
  return address;
}

std::optional<uint64_t> SyntheticMemory::cuda_malloc(uint64_t size) {
  if (!take(size)) return std::nullopt;
  return place(size);
}

void SyntheticMemory::cuda_free(uint64_t, uint64_t size) { used_ -= round_up(size, k_round_large); }

bool SyntheticMemory::map(uint64_t, uint64_t size) { return take(size); }

void SyntheticMemory::unmap(uint64_t, uint64_t size) { used_ -= round_up(size, k_round_large); }

const RecordedCall* RecordedMemory::upcoming(RecordedCall::Kind kind) const {
  if (next_ >= window_ || next_ >= calls_.size() || calls_[next_].kind != kind) return nullptr;
  return &calls_[next_];
}

void RecordedMemory::differ() {
  if (!first_difference_) first_difference_ = next_;
  ++differing_;
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

void RecordedMemory::close_window() {
  const size_t end = window_ < calls_.size() ? window_ : calls_.size();
  for (; next_ < end; ++next_) differ();
}

std::optional<uint64_t> RecordedMemory::cuda_malloc(uint64_t size) {
  const RecordedCall* call = upcoming(RecordedCall::Kind::segment_alloc);
  if (call == nullptr) return std::nullopt;
  if (call->size != size) {
    differ();
    spare_ += round_up(size, k_round_large);
    return spare_ - round_up(size, k_round_large);
  }
  ++next_;
  ++matched_;
  return call->address;
}

void RecordedMemory::cuda_free(uint64_t address, uint64_t size) {
  consume(RecordedCall::Kind::segment_free, address, size);
}

uint64_t RecordedMemory::reserve(uint64_t size) {
  // The reservation is not recorded; its first pages are mapped next, at its start.
  const RecordedCall* call = upcoming(RecordedCall::Kind::segment_map);
  if (call != nullptr) return call->address;
  spare_ += size;
  return spare_ - size;
}

bool RecordedMemory::map(uint64_t address, uint64_t size) {
  if (upcoming(RecordedCall::Kind::segment_map) == nullptr) return false;
  consume(RecordedCall::Kind::segment_map, address, size);
  return true;
}

void RecordedMemory::unmap(uint64_t address, uint64_t size) {
  consume(RecordedCall::Kind::segment_unmap, address, size);
}

}  // namespace cufit::memory
