// SPDX-License-Identifier: Apache-2.0
#include "formats/python/python_metadata.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  cufit::formats::parse_python_metadata(text);
  cufit::formats::header_values(text, "Tag");
  cufit::formats::parse_record(text);
  cufit::formats::parse_metadata_folder(text);
  cufit::formats::parse_pyvenv_cfg(text);
  cufit::formats::parse_pth(text);
  cufit::formats::is_shared_object_name(text);
  cufit::formats::python_tag_of(text);
  return 0;
}
