// SPDX-License-Identifier: Apache-2.0
// Tar archives as a stream: one entry after the other, without unpacking. Used for images saved by
// docker and their layers.
//
// Header, 512 bytes, numbers in octal text or (first bit set) base 256, big endian:
//     0 name 100   100 mode 8   108 uid 8   116 gid 8   124 size 12   136 mtime 12   148 checksum 8
//   156 type 1   157 link name 100   257 "ustar" 6   263 version 2   265 user 32   297 group 32
//   329 device major 8   337 device minor 8   345 name prefix 155 (ustar)
// Contents follow, padded to 512. Types: '0' and NUL file, '1' hard link, '2' symbolic link, '3'
// and '4' devices, '5' directory, '6' pipe; 'x' and 'g' pax records ("LEN KEY=VALUE\n") for the
// next entry and for all, 'L' and 'K' GNU's long name and link name, 'S' GNU's sparse file (its
// contents are not read). Two blocks of zeros end an archive. Origin: POSIX.1-2017 pax, GNU tar
// manual "Basic Tar Format".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/bytes.h"

namespace cufit::formats {

enum class TarType { file, directory, symlink, hardlink, character_device, other };

struct TarEntry {
  TarType type = TarType::other;
  std::string path;     // as written: "./usr/lib/x", "../x"; may hold anything but zeros
  std::string link;     // of links
  uint64_t offset = 0;  // of the contents in the archive
  uint64_t size_bytes = 0;
  uint32_t mode = 0;
  uint32_t device_major = 0, device_minor = 0;
};

struct TarLimits {
  uint64_t entries = 8'000'000;         // a large image has some 500 000
  uint64_t extension_bytes = 1u << 20;  // of one pax record or long name
};

class TarReader {
 public:
  // `jump(n)`: passes over n bytes of the stream, where that costs less than reading them.
  explicit TarReader(ByteStream& stream, const TarLimits& limits = {},
                     std::function<Result<bool>(uint64_t)> jump = {});

  // The next entry, the rest of the one before skipped; nullopt at the end. Error{malformed} names
  // archive and byte.
  Result<std::optional<TarEntry>> next();
  // Contents of the entry that came last; 0 at their end.
  Result<size_t> read(std::span<std::byte> out);
  uint64_t position() const { return position_; }

 private:
  Error broken(uint64_t at, const std::string& what) const;
  Result<bool> fill(std::byte* out, size_t size);  // false: nothing came
  Result<bool> skip(uint64_t size);
  Result<std::string> extension(uint64_t size);
  Result<bool> apply_pax(const std::string& text, uint64_t at, bool global);
  Result<bool> sparse_blocks(bool more);

  ByteStream& stream_;
  TarLimits limits_;
  std::function<Result<bool>(uint64_t)> jump_;
  uint64_t position_ = 0, entries_ = 0;
  uint64_t left_ = 0, padding_ = 0;  // of the current contents
  // What extension records said of the next entry, and of all.
  std::optional<std::string> path_, link_, all_path_, all_link_;
  std::optional<uint64_t> size_;
};

// Do the bytes begin with a tar header (its checksum holds)?
bool is_tar(std::string_view first_512_bytes);

}  // namespace cufit::formats
