// SPDX-License-Identifier: Apache-2.0
// Any bytes as a layer of an image: read as a tar archive (plain, or compressed by their first
// bytes), laid over itself, looked up.
#include <cstdlib>
#include <memory>

#include "host/image/image_host.h"
#include "host/image/image_layer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit;
  const auto source = std::make_shared<MemorySource>(
      "fuzz", std::string(reinterpret_cast<const char*>(data), size));
  host::LayerLimits limits;
  limits.text_bytes = 1u << 16;
  limits.held_bytes = 4u << 20;
  limits.expanded_bytes = 8u << 20;
  std::vector<std::string> problems;
  for (const bool again : {true, false}) {
    uint64_t held = 0;
    Result<facts::ImageLayer> layer = host::read_layer(source, again, {}, problems, held, limits);
    if (!layer) continue;
    const facts::ImageTree tree({*layer, *layer});
    const host::ImageHost host(tree, {}, "x86_64");
    (void)host.list("/");
    tree.each_file([&](const std::string& path, const facts::ImageTree::Node&) {
      std::string found = path;
      if (tree.find(found) == nullptr || found != path) std::abort();
      (void)host.read_head(path, 64);
    });
    for (const facts::LayerFile& file : layer->files) (void)host.read_file(file.path, 1u << 16);
  }
  return 0;
}
