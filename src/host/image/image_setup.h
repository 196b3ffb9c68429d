// SPDX-License-Identifier: Apache-2.0
// Reads what an image serves and lets in from its layers; see facts/image_setup.h.
#pragma once

#include "facts/image_setup.h"
#include "facts/opened_image.h"

namespace cufit::host {

// Bounds: 1 MiB of a file, 64 files of each kind, Include 8 deep.
facts::ImageSetup read_image_setup(const facts::OpenedImage& image, const facts::ImageTree& tree);

}  // namespace cufit::host
