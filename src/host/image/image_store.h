// SPDX-License-Identifier: Apache-2.0
// Opens a saved image: an archive of `docker save` or `podman save` (manifest.json and layer tars,
// or an OCI layout inside a tar; plain or compressed as a whole) or a folder in OCI layout. Finds
// the image for the wanted platform and reads its layers.
//
// The digests of descriptions (indexes, manifests, configurations) and of layers of at most
// 64 MiB are verified: by their name in an OCI layout, of plain ones by what the configuration has
// for their contents too. Of larger ones gzip's and zstd's checksums are; of larger
// plain ones nothing is, as most of their bytes are never read.
#pragma once

#include <string>

#include "facts/opened_image.h"
#include "host/image/image_archive.h"

namespace cufit::host {

struct ImageOptions {
  std::string os = "linux", architecture;  // empty: amd64 where the image has it, else its only one
  ImageProgress progress;
};

Result<facts::OpenedImage> open_image(const Host& host, const std::string& path,
                                      const ImageOptions& options = {});

}  // namespace cufit::host
