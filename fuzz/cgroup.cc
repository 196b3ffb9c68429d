// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/system/cgroup.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  size_t middle = text.find('|');
  std::string_view mounts =
      middle == std::string_view::npos ? std::string_view() : text.substr(middle + 1);
  (void)cufit::formats::find_cgroup_folders(cufit::formats::parse_cgroup(text.substr(0, middle)),
                                            cufit::formats::parse_mountinfo(mounts), "memory");
  (void)cufit::formats::tmpfs_bytes(text);
  return 0;
}
