// SPDX-License-Identifier: Apache-2.0
#include "host/quota/ring_files.h"

#include "base/format.h"
#include "host/files/host.h"
#include "host/process/process_tree.h"

namespace cufit::host {

std::vector<RingFile> read_rings(const std::string& folder) {
  constexpr size_t k_most_rings = 256;
  std::vector<RingFile> out;
  if (folder.empty()) return out;
  const RealHost files;
  for (const std::string& name : names_in(folder)) {
    if (!ends_with(name, ".ring") || out.size() == k_most_rings) continue;
    const std::string path = folder + "/" + name;
    const auto bytes = files.read_file(path, size_t{1} << 20);
    if (!bytes) continue;
    auto ring = formats::parse_gpu_ring(*bytes);
    if (ring) out.push_back({path, std::move(*ring)});
  }
  return out;
}

}  // namespace cufit::host
