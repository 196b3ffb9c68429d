// SPDX-License-Identifier: Apache-2.0
// Texts by number, each content once: a snapshot says "alloc" a million times. Numbers count up
// from 0 in order of first appearance, so texts interned before reading starts have known numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/chunked.h"

namespace cufit::formats {

class TextPool {
 public:
  uint32_t intern(std::string_view text);
  std::string_view operator[](uint32_t number) const {
    return {entries_[number].at, entries_[number].size};
  }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    const char* at;
    uint32_t size, hash;
  };
  void grow();
  const char* keep(std::string_view text);

  Chunked<Entry, 10> entries_;
  std::vector<uint32_t> slots_;  // number + 1, 0 when empty; open addressing, a power of two
  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t left_ = 0;  // bytes free at the end of the last block of equal size
  char* next_ = nullptr;
};

// For tables of this kind. Collisions can be chosen: a hostile file may cost time, never memory.
uint64_t hash_bytes(const void* bytes, size_t size);

}  // namespace cufit::formats
