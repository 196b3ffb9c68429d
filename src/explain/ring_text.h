// SPDX-License-Identifier: Apache-2.0
// The black box of a process as a text: a line for each of facts::ring_lines(), in English, in the words of the messages
// "explain.ring.*".
#pragma once

#include <string>

#include "formats/system/gpu_ring.h"
#include "knowledge/knowledge.h"

namespace cufit::explain {

std::string ring_text(const formats::GpuRing& ring, const knowledge::Knowledge& knowledge);

}  // namespace cufit::explain
