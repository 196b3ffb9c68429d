// SPDX-License-Identifier: Apache-2.0
#include "memory/free_blocks.h"

#include <cstring>
#include <utility>

namespace cufit::memory {
namespace {

bool before(const FreeBlocks::Entry& a, const FreeBlocks::Entry& b) {
  if (a.size != b.size) return a.size < b.size;
  if (a.address != b.address) return a.address < b.address;
  return a.block < b.block;
}

// How many of eight numbers, `stride` apart, are smaller: sums, since nothing can foretell jumps.
template <size_t stride>
uint32_t smaller_of_eight(const uint64_t* numbers, uint64_t than) {
  uint32_t count = 0;
  for (size_t i = 0; i < 8; ++i) count += numbers[i * stride] < than ? 1 : 0;
  return count;
}

}  // namespace

uint32_t FreeBlocks::Chunk::find(const Entry& entry) const {
  static_assert(k_capacity == 64);
  const uint32_t eights = smaller_of_eight<8>(sizes.data() + 7, entry.size);
  if (eights == 8) return k_capacity;
  uint32_t slot = 8 * eights + smaller_of_eight<1>(sizes.data() + 8 * eights, entry.size);
  while (slot < count && before(at(slot), entry)) ++slot;  // few have the same size
  return slot;
}

void FreeBlocks::Chunk::insert(uint32_t slot, const Entry& entry) {
  std::memmove(&sizes[slot + 1], &sizes[slot], (count - slot) * sizeof(uint64_t));
  std::memmove(&places[slot + 1], &places[slot], (count - slot) * sizeof(Place));
  sizes[slot] = entry.size;
  places[slot] = {entry.address, entry.block};
  ++count;
}

void FreeBlocks::Chunk::erase(uint32_t slot) {
  --count;
  std::memmove(&sizes[slot], &sizes[slot + 1], (count - slot) * sizeof(uint64_t));
  std::memmove(&places[slot], &places[slot + 1], (count - slot) * sizeof(Place));
  sizes[count] = UINT64_MAX;
}

// The first chunk whose last entry is not before the entry; the number of chunks if none is.
size_t FreeBlocks::find_chunk(const Entry& entry) const {
  size_t from = 0, count = chunks_.size();
  while (count > 0) {
    const size_t half = count / 2;
    const Chunk& middle = *chunks_[from + half];
    const bool is_before = before(middle.at(middle.count - 1), entry);
    from = is_before ? from + half + 1 : from;
    count = is_before ? count - half - 1 : half;
  }
  return from;
}

FreeBlocks::Position FreeBlocks::find(const Entry& entry) const {
  const size_t chunk = find_chunk(entry);
  if (chunk == chunks_.size()) return {chunk, 0};
  return {chunk, chunks_[chunk]->find(entry)};
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

std::unique_ptr<FreeBlocks::Chunk> FreeBlocks::new_chunk() {
  if (spare_) return std::move(spare_);
  return std::make_unique<Chunk>();
}

void FreeBlocks::split_chunk(size_t chunk) {
  std::unique_ptr<Chunk> upper = new_chunk();
  Chunk& lower = *chunks_[chunk];
  constexpr uint32_t half = k_capacity / 2;
  for (uint32_t i = 0; i < half; ++i) {
    upper->sizes[i] = std::exchange(lower.sizes[half + i], UINT64_MAX);
    upper->places[i] = lower.places[half + i];
  }
  lower.count = upper->count = half;
  chunks_.insert(chunks_.begin() + static_cast<ptrdiff_t>(chunk) + 1, std::move(upper));
}

void FreeBlocks::insert(uint64_t size, uint64_t address, BlockIndex block) {
  const Entry entry{size, address, block};
  ++count_;
  if (chunks_.empty()) chunks_.push_back(new_chunk());
  // Beyond the last entry: the last chunk.
  size_t chunk = chunks_.size() == 1 ? 0 : find_chunk(entry);
  if (chunk == chunks_.size()) --chunk;
  if (chunks_[chunk]->count == k_capacity) {
    split_chunk(chunk);
    const Chunk& lower = *chunks_[chunk];
    if (before(lower.at(lower.count - 1), entry)) ++chunk;
  }
  Chunk& in = *chunks_[chunk];
  in.insert(in.find(entry), entry);
}

void FreeBlocks::erase(Position position) {
  --count_;
  Chunk& in = *chunks_[position.chunk];
  in.erase(position.slot);
  if (in.count > 0) return;
  spare_ = std::move(chunks_[position.chunk]);
  chunks_.erase(chunks_.begin() + static_cast<ptrdiff_t>(position.chunk));
}

}  // namespace cufit::memory
