// SPDX-License-Identifier: Apache-2.0
#include "memory/free_blocks.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace cufit::memory {
namespace {

// How many of eight numbers, `stride` apart, are smaller: sums, since nothing can foretell jumps.
template <size_t stride, typename Slot>
uint32_t smaller_of_eight(const Slot* slots, uint64_t than) {
  uint32_t count = 0;
  for (size_t i = 0; i < 8; ++i) count += slots[i * stride].order < than ? 1 : 0;
  return count;
}

}  // namespace

uint32_t FreeBlocks::Chunk::find(uint64_t order) const {
  static_assert(k_capacity == 64);
  const uint32_t eights = smaller_of_eight<8>(slots.data() + 7, order);
  if (eights == 8) return k_capacity;
  return 8 * eights + smaller_of_eight<1>(slots.data() + 8 * eights, order);
}

void FreeBlocks::Chunk::insert(uint32_t slot, Slot entry) {
  std::memmove(&slots[slot + 1], &slots[slot], (count - slot) * sizeof(Slot));
  slots[slot] = entry;
  ++count;
}

void FreeBlocks::Chunk::erase(uint32_t slot) {
  --count;
  std::memmove(&slots[slot], &slots[slot + 1], (count - slot) * sizeof(Slot));
  slots[count].order = UINT64_MAX;
}

uint32_t FreeBlocks::Chunk::move(uint32_t from, Slot entry) {
  uint32_t to = find(entry.order);
  if (to <= from) {
    std::memmove(&slots[to + 1], &slots[to], (from - to) * sizeof(Slot));
  } else {
    --to;  // the one that goes was before it
    std::memmove(&slots[from], &slots[from + 1], (to - from) * sizeof(Slot));
  }
  slots[to] = entry;
  return to;
}

// The first chunk whose last entry is not before the order; the number of chunks if none is.
uint32_t FreeBlocks::find_chunk(uint64_t order) const {
  uint32_t from = 0, count = static_cast<uint32_t>(lasts_.size());
  while (count > 0) {
    const uint32_t half = count / 2;
    const bool is_before = lasts_[from + half] < order;
    from = is_before ? from + half + 1 : from;
    count = is_before ? count - half - 1 : half;
  }
  return from;
}

FreeBlocks::Position FreeBlocks::find_order(uint64_t order) const {
  const uint32_t chunk = find_chunk(order);
  if (chunk == chunks_.size()) return end();
  return {chunk, chunks_[chunk]->find(order)};
}

FreeBlocks::Position FreeBlocks::find(const Entry& entry) const {
  const Position at = find_order(entry.order);
  return at_end(at) || slot(at).order != entry.order ? at : find_whole(entry);
}

FreeBlocks::Position FreeBlocks::find(BlockIndex block) const {
  const Entry entry = entry_of(block);
  const Position at = find_order(entry.order);
  return slot(at).block == block ? at : find_whole(entry);
}

FreeBlocks::Position FreeBlocks::find_whole(const Entry& entry) const {
  const auto is_before = [&](const Slot& slot) {
    const Entry other = entry_of(slot.block);
    return std::tie(other.size, other.address, other.block) <
           std::tie(entry.size, entry.address, entry.block);
  };
  const auto chunk = std::partition_point(
      chunks_.begin(), chunks_.end(),
      [&](const std::unique_ptr<Chunk>& one) { return is_before(one->slots[one->count - 1]); });
  if (chunk == chunks_.end()) return end();
  const auto first = (*chunk)->slots.begin();
  const auto slot = std::partition_point(first, first + (*chunk)->count, is_before);
  return {static_cast<size_t>(chunk - chunks_.begin()), static_cast<uint32_t>(slot - first)};
}

FreeBlocks::Position FreeBlocks::next(Position position) const {
  if (position.slot() + 1 < chunks_[position.chunk()]->count)
    return {position.chunk(), position.slot() + 1};
  return {position.chunk() + 1, 0};
}

bool FreeBlocks::step_back(Position& position) const {
  if (position.slot() > 0) {
    position = {position.chunk(), position.slot() - 1};
    return true;
  }
  if (position.chunk() == 0) return false;
  const uint32_t chunk = position.chunk() - 1;
  position = {chunk, chunks_[chunk]->count - 1};
  return true;
}

std::unique_ptr<FreeBlocks::Chunk> FreeBlocks::new_chunk() {
  if (spare_) return std::move(spare_);
  return std::make_unique<Chunk>();
}

void FreeBlocks::split_chunk(uint32_t chunk) {
  std::unique_ptr<Chunk> upper = new_chunk();
  Chunk& lower = *chunks_[chunk];
  constexpr uint32_t half = k_capacity / 2;
  for (uint32_t i = 0; i < half; ++i)
    upper->slots[i] = std::exchange(lower.slots[half + i], {UINT64_MAX, k_none});
  lower.count = upper->count = half;
  lasts_.insert(lasts_.begin() + chunk, lower.last());
  chunks_.insert(chunks_.begin() + chunk + 1, std::move(upper));
}

void FreeBlocks::insert(BlockIndex block) {
  const Entry entry = entry_of(block);
  ++count_;
  if (chunks_.empty()) {
    chunks_.push_back(new_chunk());
    lasts_.push_back(0);
  }
  const Position at = find(entry);
  uint32_t chunk = at.chunk(), slot = at.slot();
  if (at_end(at)) slot = chunks_[--chunk]->count;
  if (chunks_[chunk]->count == k_capacity) {
    split_chunk(chunk);
    const uint32_t lower = chunks_[chunk]->count;
    if (slot > lower) ++chunk, slot -= lower;
  }
  Chunk& in = *chunks_[chunk];
  in.insert(slot, {entry.order, block});
  lasts_[chunk] = in.last();
}

void FreeBlocks::erase(Position position) {
  --count_;
  const uint32_t chunk = position.chunk();
  Chunk& in = *chunks_[chunk];
  in.erase(position.slot());
  if (in.count > 0) {
    lasts_[chunk] = in.last();
    return;
  }
  spare_ = std::move(chunks_[chunk]);
  chunks_.erase(chunks_.begin() + chunk);
  lasts_.erase(lasts_.begin() + chunk);
}

void FreeBlocks::replace(Position position, BlockIndex block) {
  const uint64_t order = entry_of(block).order;
  const uint32_t chunk = position.chunk();
  Chunk& in = *chunks_[chunk];
  const bool stays_above = chunk == 0 || order > in.slots[0].order;
  const bool stays_below = chunk + 1 == chunks_.size() || order < in.last();
  bool is_alone = stays_above && stays_below && order != UINT64_MAX;
  if (is_alone) {
    const uint32_t at = in.move(position.slot(), {order, block});
    lasts_[chunk] = in.last();
    is_alone = (at == 0 || in.slots[at - 1].order != order) &&
               (at + 1 == in.count || in.slots[at + 1].order != order);
    position = {chunk, at};
  }
  if (is_alone) return;
  erase(position);
  insert(block);
}

}  // namespace cufit::memory
