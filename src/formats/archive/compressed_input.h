// SPDX-License-Identifier: Apache-2.0
// A file read from its start, expanded on the way if its first bytes say gzip (1f 8b; RFC 1952,
// several members one after the other) or zstd (28 b5 2f fd; RFC 8878, frames one after the other).
// A zstd file may begin with a skippable frame (5x 2a 4d 18). bzip2 and xz are told from their
// first bytes and refused by name. Anything else comes through unchanged. Checksums are verified
// where a member ends: who must know that the file is whole reads to its end. zlib's and zstd's
// headers are included in the .cc only.
//
// What a small file expands to is unknown in advance: a bomb ends at a total, or at a ratio that
// no snapshot reaches (gzip gives 12 to 14 on allocation traces, zstd's best level about 30).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"

namespace cufit::formats {

enum class Compression { none, gzip, zstd };
const char* to_string(Compression compression);

struct ExpandLimits {
  uint64_t total_bytes = 64ull << 30;
  uint64_t ratio = 250;               // of expanded to compressed bytes,
  uint64_t ratio_from = 64ull << 20;  // once this much has come out; zlib alone can reach 1032
};

class CompressedInput final : public ByteStream {
 public:
  static Result<CompressedInput> open(std::shared_ptr<const ByteSource> source,
                                      const ExpandLimits& limits = {});
  CompressedInput(CompressedInput&&) noexcept;
  CompressedInput& operator=(CompressedInput&&) noexcept;
  ~CompressedInput() override;

  Compression compression() const;
  // Error{malformed} for damaged data or data that ends too early, with the byte of the file.
  Result<size_t> read(std::span<std::byte> out) override;
  const std::string& name() const override;

 private:
  struct State;
  explicit CompressedInput(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace cufit::formats
