// SPDX-License-Identifier: Apache-2.0
// Where readers of untrusted bytes get them from, and bounded little-endian loads.
//
// Readers use ByteSource::read (pread on a real file) instead of a mapped file: a file truncated by
// an installer while it is mapped kills the process with SIGBUS, and touched pages of a 500 MB
// library count as resident memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/result.h"

namespace cufit {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size_bytes() const = 0;
  // Reads up to out.size() bytes at `offset`; fewer only at the end of the data. Never reads
  // outside.
  virtual Result<size_t> read(uint64_t offset, std::span<std::byte> out) const = 0;
  virtual const std::string& name() const = 0;  // for messages

  // Exactly `size` bytes or Error{malformed} that names file and offset. `limit` bounds hostile
  // sizes.
  Result<std::string> read_exact(uint64_t offset, uint64_t size, uint64_t limit = 64u << 20) const;
};

// Bytes that come once, in order: the inside of a compressed file.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills `out` as far as there are bytes; 0 only at the end (`out` is not empty).
  virtual Result<size_t> read(std::span<std::byte> out) = 0;
  virtual const std::string& name() const = 0;  // for messages
};

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::string name, std::string bytes)
      : name_(std::move(name)), bytes_(std::move(bytes)) {}
  uint64_t size_bytes() const override { return bytes_.size(); }
  Result<size_t> read(uint64_t offset, std::span<std::byte> out) const override;
  const std::string& name() const override { return name_; }

 private:
  std::string name_;
  std::string bytes_;
};

// Unaligned little-endian load; the caller guarantees sizeof(T) bytes at `at`.
template <class T>
T load_le(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof value);  // every supported host (x86-64, AArch64) is little-endian
  return value;
}

}  // namespace cufit
