// SPDX-License-Identifier: Apache-2.0
// Any bytes as a zip archive: members are read within small limits.
#include <cstdlib>
#include <memory>

#include "formats/archive/zip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit;
  formats::ZipLimits limits;
  limits.members = 64;
  limits.member_bytes = 1u << 20;
  auto source = std::make_shared<MemorySource>(
      "fuzz", std::string(reinterpret_cast<const char*>(data), size));
  Result<formats::ZipFile> zip = formats::ZipFile::open(source, limits);
  if (!zip) return 0;
  for (const formats::ZipMember& member : zip->members()) {
    (void)zip->read_start(member, 4);
    Result<std::string> bytes = zip->read(member);
    if (bytes && bytes->size() > limits.member_bytes) std::abort();
  }
  return 0;
}
