// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/free_blocks.h"

#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace cufit::memory {
namespace {

using Place = std::tuple<uint64_t, uint64_t, BlockIndex>;  // size, address, block: the order

// Arrays up to this one are gone through by a loop: a call of memmove costs more.
constexpr size_t k_short = 16;

template <typename Slot>
void erase_slot(std::vector<Slot>& slots, size_t slot) {
  if (slots.size() > k_short) {
    slots.erase(slots.begin() + static_cast<std::ptrdiff_t>(slot));
    return;
  }
  for (; slot + 1 < slots.size(); ++slot) slots[slot] = slots[slot + 1];
  slots.pop_back();
}

}  // namespace

struct FreeBlocks::Many {
  std::set<Place> places;
  std::unordered_map<BlockIndex, std::set<Place>::iterator> by_block;

  void insert(const Entry& entry) {
    by_block[entry.block] = places.emplace(entry.size, entry.address, entry.block).first;
  }
  void erase(BlockIndex block) {
    places.erase(by_block.at(block));
    by_block.erase(block);
  }
};

FreeBlocks::FreeBlocks(const BlockStore& store) : store_(&store) {}
FreeBlocks::FreeBlocks(FreeBlocks&&) noexcept = default;
FreeBlocks::~FreeBlocks() = default;

bool FreeBlocks::is_before(BlockIndex block, const Entry& entry) const {
  const PoolBlock& at = (*store_)[block];
  return std::tie(at.size, at.ptr, block) < std::tie(entry.size, entry.address, entry.block);
}

// The first that is not before the entry.
size_t FreeBlocks::slot_for(const std::vector<Slot>& slots, const Entry& entry) const {
  if (slots.size() > k_short) {
    const auto before = [&](const Slot& slot) { return is_before(slot, entry); };
    return static_cast<size_t>(std::partition_point(slots.begin(), slots.end(), before) -
                               slots.begin());
  }
  size_t slot = 0;
  while (slot < slots.size() && is_before(slots[slot], entry)) ++slot;
  return slot;
}

FreeBlocks::Position FreeBlocks::first_from(uint32_t number) const {
  if (!classes_) return number == 0 && !few_.slots.empty() ? Position(0, 0) : end();
  if (number == k_classes) return end();
  size_t word = number / 64;
  uint64_t bits = classes_->filled[word] & ~uint64_t{0} << number % 64;
  while (bits == 0) {
    if (++word == classes_->filled.size()) return end();
    bits = classes_->filled[word];
  }
  number = static_cast<uint32_t>(64 * word) + static_cast<uint32_t>(std::countr_zero(bits));
  const Run& in = classes_->runs[number];
  return {number, in.many ? std::get<BlockIndex>(*in.many->places.begin()) : 0};
}

FreeBlocks::Position FreeBlocks::next(Position position) const {
  const Run& in = run(position.run_);
  if (in.many) {
    const auto after = std::next(in.many->by_block.at(position.slot_));
    if (after != in.many->places.end()) return {position.run_, std::get<BlockIndex>(*after)};
  } else if (++position.slot_ < in.slots.size()) {
    return position;
  }
  return first_from(position.run_ + 1);
}

bool FreeBlocks::step_back(Position& position) const {
  if (!at_end(position)) {
    const Run& in = run(position.run_);
    if (in.many) {
      const auto at = in.many->by_block.at(position.slot_);
      if (at != in.many->places.begin())
        return position.slot_ = std::get<BlockIndex>(*std::prev(at)), true;
    } else if (position.slot_ > 0) {
      return --position.slot_, true;
    }
  }
  for (uint32_t number = classes_ ? position.run_ : std::min(position.run_, 1u); number-- > 0;) {
    const Run& in = run(number);
    if (in.many) return position = {number, std::get<BlockIndex>(*in.many->places.rbegin())}, true;
    if (!in.slots.empty())
      return position = {number, static_cast<uint32_t>(in.slots.size()) - 1}, true;
  }
  return false;
}

FreeBlocks::Position FreeBlocks::lower_bound(uint64_t size, uint64_t address) const {
  const uint32_t number = run_of(size);
  const Run& in = run(number);
  if (in.many) {
    const auto found = in.many->places.lower_bound({size, address, 0});
    if (found != in.many->places.end()) return {number, std::get<BlockIndex>(*found)};
  } else {
    const size_t slot = slot_for(in.slots, {order_of(size, address), size, address, 0});
    if (slot < in.slots.size()) return {number, static_cast<uint32_t>(slot)};
  }
  return first_from(number + 1);
}

FreeBlocks::Position FreeBlocks::find(BlockIndex block) const {
  const uint32_t number = run_of((*store_)[block].size);
  const Run& in = run(number);
  if (in.many) return {number, block};
  const std::vector<Slot>& slots = in.slots;
  if (slots.size() > k_short)
    return {number, static_cast<uint32_t>(slot_for(slots, entry_of(block)))};
  uint32_t slot = 0;
  while (slots[slot].block != block) ++slot;
  return {number, slot};
}

void FreeBlocks::insert_into(Run& run, const Entry& entry) {
  if (run.many) return run.many->insert(entry);
  if (run.slots.size() == k_most_slots) {
    run.many = std::make_unique<Many>();
    for (const Slot& slot : std::exchange(run.slots, {})) run.many->insert(entry_of(slot.block));
    return run.many->insert(entry);
  }
  std::vector<Slot>& slots = run.slots;
  size_t slot = slots.size();
  if (slot > k_short) {
    slots.insert(slots.begin() + static_cast<std::ptrdiff_t>(slot_for(slots, entry)),
                 {entry.order, entry.block});
    return;
  }
  slots.emplace_back();
  for (; slot > 0 && !is_before(slots[slot - 1], entry); --slot) slots[slot] = slots[slot - 1];
  slots[slot].order = entry.order;
  slots[slot].block = entry.block;
}

void FreeBlocks::make_classes() {
  classes_ = std::make_unique<Classes>();
  count_ = 0;
  for (const Slot& slot : std::exchange(few_.slots, {})) insert(slot.block);
}

void FreeBlocks::insert(BlockIndex block) {
  const Entry entry = entry_of(block);
  if (!classes_ && count_ == k_few) make_classes();
  ++count_;
  if (!classes_) return insert_into(few_, entry);
  const uint32_t number = class_of(entry.size);
  insert_into(classes_->runs[number], entry);
  classes_->filled[number / 64] |= uint64_t{1} << number % 64;
}

void FreeBlocks::erase(Position position) {
  --count_;
  Run& in = classes_ ? classes_->runs[position.run_] : few_;
  if (in.many) {
    in.many->erase(position.slot_);
    if (in.many->places.empty()) in.many.reset();
  } else {
    erase_slot(in.slots, position.slot_);
  }
  if (classes_ && in.slots.empty() && !in.many)
    classes_->filled[position.run_ / 64] &= ~(uint64_t{1} << position.run_ % 64);
}

}  // namespace cufit::memory
