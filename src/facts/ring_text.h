// SPDX-License-Identifier: Apache-2.0
// The black box of a process (formats/system/gpu_ring.h) in sentences, one fact a line, so that the engine of
// `cufit explain` reads it beside a log. Each line begins with "cufit ring: ", which nothing else prints; what a refusal
// means is worked out here, by arithmetic, and said in words of its own, which the signs of data/findings look for.
#pragma once

#include <string>

#include "formats/system/gpu_ring.h"

namespace cufit::facts {

std::string ring_text(const formats::GpuRing& ring);

}  // namespace cufit::facts
