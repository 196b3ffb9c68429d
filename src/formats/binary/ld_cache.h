// SPDX-License-Identifier: Apache-2.0
// Reader of /etc/ld.so.cache, the index in which glibc's loader looks a library up by name. Used by
// host/machine/loader. It reads the table only; whether the listed files still exist is for the
// caller.
//
// Layout (glibc's dl-cache.h; little endian). "New" format, alone since glibc 2.32:
//   0  "glibc-ld.so.cache" "1.1"   20 u32 entries   24 u32 bytes of strings   28 u8 byte order (0
//   unset, 2 little) 32 u32 offset of the extension directory (0 = none)   36 u32[3] unused   48
//   entries of 24 bytes: 0  u32 flags   4 u32 offset of the name   8 u32 offset of the path   12
//   u32 OS version   16 u64 hwcap
// Offsets of names and paths count from the start of this header, those of the extensions from the
// start of the file. Older systems put "ld.so-1.7.0" + u32 count + 12-byte entries in front and the
// new header after them, aligned to 8 (files of the old format only: before glibc 2.2, not read).
// hwcap bit 62 set: the low 32 bits index the names of glibc-hwcaps sub-directories ("x86-64-v3"),
// which the extension directory lists: u32 0xeaa42174, u32 count, then {u32 tag, u32 flags, u32
// offset, u32 size}; tag 1 holds u32 string offsets. Without bit 62 a non-zero hwcap is a mask of
// the time before glibc 2.33 ("haswell" folders).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/damage.h"

namespace cufit::formats {

struct LdCacheEntry {
  std::string_view name;    // "libcudart.so.12"; points into the LdCache
  std::string_view path;    // "/usr/local/cuda/lib64/libcudart.so.12"
  std::string_view hwcaps;  // "x86-64-v3"; empty = for every CPU
  uint32_t flags = 0;       // low byte: kind (3 = glibc 2), next byte: architecture
  bool legacy_hwcap = false;
};

struct LdCache {
  std::string bytes;  // the file; entries point into it
  // in the file's order, which is the order of preference for one name
  std::vector<LdCacheEntry> entries;
  std::string generator;  // "ldconfig (GNU libc) stable release version 2.36"; may be empty
  std::vector<Damage> damage;

  LdCache() = default;
  LdCache(LdCache&&) = default;  // `bytes` of a real cache are on the heap: views survive a move
  LdCache& operator=(LdCache&&) = default;
  LdCache(const LdCache&) = delete;
  LdCache& operator=(const LdCache&) = delete;

  // Entries of one name that a process of this architecture ("x86_64", "aarch64") may use, in order
  // of preference.
  std::vector<const LdCacheEntry*> find(std::string_view name, std::string_view architecture) const;
};

// Error{malformed} when no "new" header is found; damaged entries are left out and named in
// `damage`.
Result<LdCache> parse_ld_cache(std::string bytes);

}  // namespace cufit::formats
