// SPDX-License-Identifier: Apache-2.0
// Any bytes as each of the JSON files that describe an image.
#include <cstdlib>

#include "formats/archive/image_manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)formats::parse_docker_manifest(text, "fuzz");
  if (auto index = formats::parse_image_index(text, "fuzz"))
    for (const formats::ImageBlob& blob : *index)
      if (formats::blob_path(blob.digest).size() != 13 + 64) std::abort();
  if (auto manifest = formats::parse_image_manifest(text, "fuzz"))
    for (const formats::ImageBlob& blob : manifest->layers)
      if (formats::blob_path(blob.digest).find("..") != std::string::npos) std::abort();
  (void)formats::parse_image_config(text, "fuzz");
  return 0;
}
