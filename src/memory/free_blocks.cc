// SPDX-License-Identifier: Apache-2.0
#include "memory/free_blocks.h"

#include <cstring>

namespace cufit::memory {
namespace {

template <class Key>
bool before(const Key& key, uint64_t size, uint64_t address) {
  return key.size < size || (key.size == size && key.address < address);
}

// First of `count` keys that is not before (size, address).
template <class Key>
size_t first_not_before(const Key* keys, size_t count, uint64_t size, uint64_t address) {
  const Key* from = keys;
  while (count > 0) {
    const size_t half = count / 2;
    const bool right = before(from[half], size, address);
    from = right ? from + half + 1 : from;
    count = right ? count - half - 1 : half;
  }
  return static_cast<size_t>(from - keys);
}

}  // namespace

size_t FreeBlocks::find_chunk(uint64_t size, uint64_t address) const {
  return first_not_before(last_.data(), last_.size(), size, address);
}

FreeBlocks::Position FreeBlocks::lower_bound(uint64_t size, uint64_t address) const {
  const size_t chunk = find_chunk(size, address);
  if (chunk == chunks_.size()) return {chunk, 0};
  const Chunk& entries = *chunks_[chunk];
  return {chunk, static_cast<uint32_t>(
                     first_not_before(entries.entries.data(), entries.count, size, address))};
}

FreeBlocks::Position FreeBlocks::next(Position position) const {
  if (position.slot + 1 < chunks_[position.chunk]->count)
    return {position.chunk, position.slot + 1};
  return {position.chunk + 1, 0};
}

bool FreeBlocks::step_back(Position& position) const {
  if (position.slot > 0) {
    --position.slot;
    return true;
  }
  if (position.chunk == 0) return false;
  --position.chunk;
  position.slot = chunks_[position.chunk]->count - 1;
  return true;
}

void FreeBlocks::set_last(size_t chunk) {
  const Entry& entry = chunks_[chunk]->entries[chunks_[chunk]->count - 1];
  last_[chunk] = {entry.size, entry.address};
}

std::unique_ptr<FreeBlocks::Chunk> FreeBlocks::new_chunk() {
  if (spare_) return std::move(spare_);
  return std::make_unique<Chunk>();
}

void FreeBlocks::split_chunk(size_t chunk) {
  std::unique_ptr<Chunk> upper = new_chunk();
  Chunk& lower = *chunks_[chunk];
  constexpr uint32_t half = k_capacity / 2;
  std::memcpy(upper->entries.data(), lower.entries.data() + half, half * sizeof(Entry));
  lower.count = upper->count = half;
  const auto after = static_cast<ptrdiff_t>(chunk) + 1;
  chunks_.insert(chunks_.begin() + after, std::move(upper));
  last_.insert(last_.begin() + after, last_[chunk]);
  set_last(chunk);
}

void FreeBlocks::insert(uint64_t size, uint64_t address, BlockIndex block) {
  ++count_;
  if (chunks_.empty()) {
    chunks_.push_back(new_chunk());
    last_.push_back({});
  }
  size_t chunk = find_chunk(size, address);
  if (chunk == chunks_.size()) --chunk;  // beyond the last key: append to the last chunk
  if (chunks_[chunk]->count == k_capacity) {
    split_chunk(chunk);
    if (before(last_[chunk], size, address)) ++chunk;
  }
  Chunk& entries = *chunks_[chunk];
  const size_t slot = first_not_before(entries.entries.data(), entries.count, size, address);
  Entry* place = entries.entries.data() + slot;
  std::memmove(place + 1, place, (entries.count - slot) * sizeof(Entry));
  *place = {size, address, block};
  ++entries.count;
  if (slot + 1 == entries.count) last_[chunk] = {size, address};
}

void FreeBlocks::erase(Position position) {
  --count_;
  Chunk& entries = *chunks_[position.chunk];
  Entry* place = entries.entries.data() + position.slot;
  --entries.count;
  std::memmove(place, place + 1, (entries.count - position.slot) * sizeof(Entry));
  if (entries.count == 0) {
    spare_ = std::move(chunks_[position.chunk]);
    chunks_.erase(chunks_.begin() + static_cast<ptrdiff_t>(position.chunk));
    last_.erase(last_.begin() + static_cast<ptrdiff_t>(position.chunk));
  } else if (position.slot == entries.count) {
    set_last(position.chunk);
  }
}

}  // namespace cufit::memory
