// SPDX-License-Identifier: Apache-2.0
#include "memory/free_blocks.h"

#include <cstring>

namespace cufit::memory {
namespace {

bool before(const FreeBlocks::Entry& a, const FreeBlocks::Entry& b) {
  if (a.size != b.size) return a.size < b.size;
  if (a.address != b.address) return a.address < b.address;
  return a.block < b.block;
}

// First of `count` entries that is not before `entry`. The search by size takes no jump that
// depends on what it finds, since nothing can foretell those; few have the same size.
size_t first_not_before(const FreeBlocks::Entry* entries, size_t count,
                        const FreeBlocks::Entry& entry) {
  if (count == 0) return 0;
  const FreeBlocks::Entry* from = entries;
  const FreeBlocks::Entry* const end = entries + count;
  const uint64_t size = entry.size;
  while (count > 1) {
    const FreeBlocks::Entry* const middle = from + count / 2;
    from = middle[-1].size < size ? middle : from;
    count -= count / 2;
  }
  from += from->size < size ? 1 : 0;
  while (from != end && before(*from, entry)) ++from;
  return static_cast<size_t>(from - entries);
}

}  // namespace

size_t FreeBlocks::find_chunk(const Entry& entry) const {
  return first_not_before(last_.data(), last_.size(), entry);
}

FreeBlocks::Position FreeBlocks::find(const Entry& entry) const {
  const size_t chunk = find_chunk(entry);
  if (chunk == chunks_.size()) return {chunk, 0};
  const Chunk& in = *chunks_[chunk];
  return {chunk, static_cast<uint32_t>(first_not_before(in.entries.data(), in.count, entry))};
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
  last_[chunk] = chunks_[chunk]->entries[chunks_[chunk]->count - 1];
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
  const Entry entry{size, address, block};
  ++count_;
  if (chunks_.empty()) {
    chunks_.push_back(new_chunk());
    last_.push_back(entry);
  }
  size_t chunk = find_chunk(entry);
  if (chunk == chunks_.size()) --chunk;  // beyond the last entry: append to the last chunk
  if (chunks_[chunk]->count == k_capacity) {
    split_chunk(chunk);
    if (before(last_[chunk], entry)) ++chunk;
  }
  Chunk& in = *chunks_[chunk];
  const size_t slot = first_not_before(in.entries.data(), in.count, entry);
  Entry* place = in.entries.data() + slot;
  std::memmove(place + 1, place, (in.count - slot) * sizeof(Entry));
  *place = entry;
  ++in.count;
  if (slot + 1 == in.count) last_[chunk] = entry;
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
