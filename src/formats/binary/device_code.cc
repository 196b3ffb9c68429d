// SPDX-License-Identifier: Apache-2.0
#include "formats/binary/device_code.h"

namespace cufit::formats {

const char* to_string(CodeKind kind) {
  switch (kind) {
    case CodeKind::cubin:
      return "cubin";
    case CodeKind::ptx:
      return "ptx";
    case CodeKind::lto:
      return "lto";
    case CodeKind::other:
      return "other";
  }
  return "other";
}

}  // namespace cufit::formats
