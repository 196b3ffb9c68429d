// SPDX-License-Identifier: Apache-2.0
// What the processes of one launch recorded (base/abi/gpu_ring.h).
#pragma once

#include <string>
#include <vector>

#include "formats/system/gpu_ring.h"

namespace cufit::host {

struct RingFile {
  std::string path;
  formats::GpuRing ring;
};

// By name, 256 files at most; one that is no recording is passed over.
std::vector<RingFile> read_rings(const std::string& folder);

}  // namespace cufit::host
