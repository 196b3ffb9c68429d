// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <algorithm>

#include "base/format.h"

namespace cufit {

Result<std::string> ByteSource::read_exact(uint64_t offset, uint64_t size, uint64_t limit) const {
  if (size > limit) {
    return fail(Code::malformed,
                format("`{}`: a part of {} bytes at byte {} is over the limit of {}", name(), size,
                       offset, limit));
  }
  if (offset > size_bytes() || size > size_bytes() - offset) {
    return fail(Code::malformed, format("`{}`: {} bytes at byte {} reach past the end ({} bytes)",
                                        name(), size, offset, size_bytes()));
  }
  std::string out(size, '\0');
  CUFIT_TRY(got, read(offset, std::as_writable_bytes(std::span(out.data(), out.size()))));
  if (got != size) {
    return fail(Code::malformed,
                format("`{}`: {} bytes at byte {} could not be read", name(), size, offset));
  }
  return out;
}

Result<size_t> MemorySource::read(uint64_t offset, std::span<std::byte> out) const {
  if (offset >= bytes_.size()) return size_t{0};
  size_t count = std::min<size_t>(out.size(), bytes_.size() - offset);
  std::memcpy(out.data(), bytes_.data() + offset, count);
  return count;
}

}  // namespace cufit
