// SPDX-License-Identifier: Apache-2.0
#include "memory/snapshot/stacks.h"

#include <algorithm>
#include <cstring>

#include "formats/pickle/text_pool.h"

namespace cufit::memory {
namespace {

// Looks for a row equal to what `same` accepts; `add` makes it. Open addressing, at most half full.
template <class Hash, class Same, class Add>
uint32_t find_or_add(std::vector<uint32_t>& slots, size_t rows, uint32_t hash, Hash&& hash_of,
                     Same&& same, Add&& add) {
  if (slots.size() < 2 * (rows + 1)) {
    slots.assign(slots.empty() ? 256 : 2 * slots.size(), 0);
    size_t mask = slots.size() - 1;
    for (size_t i = 0; i < rows; ++i) {
      size_t slot = hash_of(i) & mask;
      while (slots[slot] != 0) slot = (slot + 1) & mask;
      slots[slot] = static_cast<uint32_t>(i + 1);
    }
  }
  size_t mask = slots.size() - 1;
  for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    if (slots[slot] == 0) {
      slots[slot] = static_cast<uint32_t>(rows + 1);
      add();
      return static_cast<uint32_t>(rows);
    }
    if (same(slots[slot] - 1)) return slots[slot] - 1;
  }
}

uint32_t hash_of(const void* bytes, size_t size) {
  return static_cast<uint32_t>(formats::hash_bytes(bytes, size) >> 16);
}

}  // namespace

Stacks::Stacks() { intern({}); }

uint32_t Stacks::intern_frame(const Frame& frame) {
  return find_or_add(
      frame_slots_, frames_.size(), hash_of(&frame, sizeof frame),
      [&](size_t i) { return hash_of(&frames_[i], sizeof frame); },
      [&](size_t i) { return std::memcmp(&frames_[i], &frame, sizeof frame) == 0; },
      [&] { frames_.push_back(frame); });
}

uint32_t Stacks::intern(std::span<const uint32_t> frames) {
  uint32_t hash = hash_of(frames.data(), frames.size_bytes());
  return find_or_add(
      slots_, stacks_.size(), hash, [&](size_t i) { return stacks_[i].hash; },
      [&](size_t i) {
        const Stack& stack = stacks_[i];
        return stack.hash == hash &&
               std::equal(frames.begin(), frames.end(), stack.frames, stack.frames + stack.depth);
      },
      [&] {
        uint32_t* kept = room(frames.size());
        std::copy(frames.begin(), frames.end(), kept);
        stacks_.push_back({kept, static_cast<uint32_t>(frames.size()), hash});
      });
}

uint32_t* Stacks::room(size_t frames) {
  if (frames > left_) {
    left_ = std::max(k_depth, frames);
    blocks_.emplace_back(new uint32_t[left_]);
    next_ = blocks_.back().get();
  }
  uint32_t* at = next_;
  next_ += frames;
  left_ -= frames;
  kept_ += frames;
  return at;
}

}  // namespace cufit::memory
