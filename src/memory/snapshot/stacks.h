// SPDX-License-Identifier: Apache-2.0
// Python (or C++) stacks of a snapshot, each content once. Nearly every entry of a trace has a list
// of its own in the file, while few differ: 62 to 117 frames in real files.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/chunked.h"

namespace cufit::memory {

struct Frame {
  uint32_t name = 0;      // text of the snapshot
  uint32_t filename = 0;  // the same
  uint32_t line = 0;
};

constexpr uint32_t k_no_stack = UINT32_MAX;  // the entry has no `frames` at all
constexpr uint32_t k_empty_stack = 0;        // it has an empty list: recorded, but no frame

class Stacks {
 public:
  static constexpr size_t k_depth = 1u << 14;  // frames of one stack

  Stacks();
  uint32_t intern_frame(const Frame& frame);
  // Frames innermost first, as in the file; k_depth at most.
  uint32_t intern(std::span<const uint32_t> frames);

  size_t frame_count() const { return frames_.size(); }
  size_t size() const { return stacks_.size(); }  // stack 0 is the empty one
  const Frame& frame(uint32_t number) const { return frames_[number]; }
  std::span<const uint32_t> operator[](uint32_t stack) const {
    const Stack& s = stacks_[stack];
    return {s.frames, s.depth};
  }
  uint64_t frames_kept() const { return kept_; }  // over all different stacks

 private:
  struct Stack {
    const uint32_t* frames;
    uint32_t depth, hash;
  };
  uint32_t* room(size_t frames);

  Chunked<Frame, 10> frames_;
  std::vector<uint32_t> frame_slots_;
  Chunked<Stack, 12> stacks_;
  std::vector<uint32_t> slots_;
  std::vector<std::unique_ptr<uint32_t[]>> blocks_;
  uint32_t* next_ = nullptr;
  size_t left_ = 0;
  uint64_t kept_ = 0;
};

}  // namespace cufit::memory
