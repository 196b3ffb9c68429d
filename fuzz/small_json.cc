// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/system/daemon_json.h"
#include "formats/system/toolkit_version.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)cufit::formats::parse_daemon_json(text, "daemon.json");
  (void)cufit::formats::parse_toolkit_json(text);
  (void)cufit::formats::parse_toolkit_text(text);
  (void)cufit::formats::parse_compat_note(text);
  return 0;
}
