// SPDX-License-Identifier: Apache-2.0
// A saved container image as it was opened: where it came from, its configuration and its layers.
// Filled by host/image/image_store.
#pragma once

#include <string>
#include <vector>

#include "facts/image_tree.h"
#include "formats/archive/image_manifest.h"

namespace cufit::facts {

struct OpenedImage {
  std::string path;
  std::string layout;       // "docker archive", "OCI archive", "OCI layout"
  bool compressed = false;  // the archive as a whole
  std::vector<std::string> tags;
  std::string digest;                  // of its manifest, or name of its configuration
  std::vector<std::string> platforms;  // of an image for several, "linux/arm64"
  size_t other_images = 0;             // further images of the archive, not looked at
  formats::ImageConfig config;
  std::vector<ImageLayer> layers;  // the base first
  std::vector<std::string> problems;
};

}  // namespace cufit::facts
