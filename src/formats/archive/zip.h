// SPDX-License-Identifier: Apache-2.0
// Zip archives (wheels) over libzip, whose header is included in zip.cc only. Lists members and
// reads single ones into memory; nothing is ever unpacked to disk. Used by `cufit inspect`.
//
// Sizes in a zip are claims of whoever made it: memory grows with what is really decompressed, a
// member that expands more than any shared object does is refused, and so is an archive whose
// members share their bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace cufit::formats {

struct ZipMember {
  std::string name;  // raw bytes of the directory; may hold anything
  uint64_t index = 0;
  uint64_t size_bytes = 0;  // claimed
  uint64_t compressed_bytes = 0;
  bool encrypted = false;
};

struct ZipLimits {
  uint64_t members = 200'000;  // torch's wheel has about 12 000
  uint64_t member_bytes = 4ull << 30;
  // Of size to compressed size, once a member is over ratio_from bytes. Shared objects expand 2 to
  // 6 times.
  uint64_t ratio = 30;
  uint64_t ratio_from = 16u << 20;
};

using ZipProgress = std::function<void(uint64_t done, uint64_t total)>;

class ZipFile {
 public:
  // Error{malformed} for what is no zip or was cut off: the directory stands at the end of the
  // file.
  static Result<ZipFile> open(std::shared_ptr<const ByteSource> source,
                              const ZipLimits& limits = {});
  ZipFile(ZipFile&&) noexcept;
  ZipFile& operator=(ZipFile&&) noexcept;
  ~ZipFile();

  const std::vector<ZipMember>& members() const;
  // The first `size` bytes at most, without looking at the rest.
  Result<std::string> read_start(const ZipMember& member, size_t size) const;
  // The whole member, its checksum verified.
  Result<std::string> read(const ZipMember& member, const ZipProgress& progress = {}) const;

 private:
  struct State;
  explicit ZipFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace cufit::formats
