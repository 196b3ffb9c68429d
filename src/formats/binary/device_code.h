// SPDX-License-Identifier: Apache-2.0
// Device code in a host binary, as its fatbin entry headers state it (formats/binary/fatbin.h reads
// them).
#pragma once

#include <cstdint>
#include <string>

namespace cufit::formats {

enum class CodeKind { cubin, ptx, lto, other };

// Equal entries are counted together: libtorch_cuda.so has 2 789 entries but twelve different
// ones.
struct DeviceCode {
  CodeKind kind = CodeKind::other;
  std::string arch;     // "90", "90a", "100f": number and suffix of the entry header
  std::string ptx_isa;  // "8.8" for PTX, else empty
  uint32_t count = 0;
  // False: only in relocatable objects of which some have no such entry, so the driver cannot link
  // a module of it.
  bool loadable = true;
};

const char* to_string(CodeKind kind);

}  // namespace cufit::formats
