// SPDX-License-Identifier: Apache-2.0
// Reads one layer of an image: a tar archive, plain or compressed by gzip or zstd, from its start
// to its end, once.
//
// Of a plain layer every file can be read later, where it lies. Of a compressed one that would mean
// to expand it again, so what cufit's readers look at is kept while it passes: small texts whole,
// and of a shared object the pages that its headers, tables and fatbin entry headers lie in. One
// shared object at a time is in memory as a whole (cuBLASLt: 0.7 GB, libtorch_cuda: up to 1.6 GB).
// What is held of all compressed layers of an image, that one with it, stays below 2 GiB; a file
// that does not fit is listed and not read, and a problem names it and its layer.
//
// A compressed layer is read to the end of its stream, past the end of the tar archive in it: only
// there its checksums are verified. The bytes of a small one are hashed on the way; those of a
// small plain one afterwards.
#pragma once

#include <functional>
#include <memory>

#include "facts/image_tree.h"

namespace cufit::host {

struct LayerLimits {
  uint64_t text_bytes = 32u << 20;
  uint64_t held_bytes = 2ull << 30;  // of all layers read with one `held`
  uint64_t expanded_bytes = 1ull << 40;
};

using LayerProgress = std::function<void(uint64_t done_bytes)>;  // of the layer as stored

// `again`: the source can be read at any place, also later. Problems are about single files; an
// Error is about the layer and names its byte. `held`: bytes that the layers so far hold in memory.
Result<facts::ImageLayer> read_layer(std::shared_ptr<const ByteSource> source, bool again,
                                     const LayerProgress& progress,
                                     std::vector<std::string>& problems, uint64_t& held,
                                     const LayerLimits& limits = {});

}  // namespace cufit::host
