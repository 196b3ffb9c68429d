// SPDX-License-Identifier: Apache-2.0
// A small buffered view of a ByteSource for readers that follow offsets: headers that lie close
// together cost one read, and nothing is allocated per header. Never reads outside the file; an
// unreadable place is a null pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "formats/damage.h"

namespace cufit::formats {

class Window {
 public:
  // `capacity`: bytes fetched by one read and the largest `size` that `at` serves.
  explicit Window(const ByteSource& source, size_t capacity = 4096)
      : source_(&source), buffer_(capacity) {}

  // `size` bytes at `offset`, valid until the next call; null when they do not lie inside the file.
  const std::byte* at(uint64_t offset, size_t size);
  // Bytes of the buffer from `offset` on (at least one unless the file ends there).
  std::span<const std::byte> from(uint64_t offset);
  // Zero-terminated string, at most `limit` characters and ending before byte `end`; false when it
  // is longer than that or the file ends before the zero.
  bool string(uint64_t offset, uint64_t end, size_t limit, std::string& out);

  const ByteSource& source() const { return *source_; }

 private:
  void fill(uint64_t offset);

  const ByteSource* source_;
  std::vector<std::byte> buffer_;
  uint64_t start_ = 0;
  size_t filled_ = 0;
};

// Keeps the first k_max_damage entries of a list: a hostile file must not turn into a gigabyte of
// complaints.
constexpr size_t k_max_damage = 32;
void add_damage(std::vector<Damage>& list, uint64_t offset, std::string what);

}  // namespace cufit::formats
