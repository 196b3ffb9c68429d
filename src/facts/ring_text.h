// SPDX-License-Identifier: Apache-2.0
// What the black box of a process (formats/system/gpu_ring.h) says, one fact a line, so that the engine of `cufit explain`
// reads it beside a log. What a refusal means is worked out here, by arithmetic. The sentences are messages
// "explain.ring.*"; each begins with "cufit ring: ", and the signs of data/findings look for their English.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/system/gpu_ring.h"

namespace cufit::facts {

struct RingLine {
  std::string id;                           // "head", "quota_refused": message "explain.ring.<id>"
  std::map<std::string, std::string> args;  // printable, and the same in every language
};

std::vector<RingLine> ring_lines(const formats::GpuRing& ring);

// What the program got on that GPU after a refusal, by the events that the ring still has. came_through: as much as was
// refused (torch frees its cache and asks again). went_on: less; it may have done with it. nothing: it was its last request.
enum class AfterRefusal { came_through, went_on, nothing };
AfterRefusal after_refusal(const formats::GpuRing& ring, const formats::RingRefusal& refusal);
// Of the last refusal of each GPU the one that the lines tell: one that nothing followed before others, then the latest.
// Null: none was refused.
const formats::RingRefusal* telling_refusal(const formats::GpuRing& ring);

// What a quota must be at least, so that the guard would have granted the refused request (guard/charge.h: pages of 2 MiB,
// steps of a pool), in steps that a person would type; bytes.
uint64_t quota_that_would_do(const formats::RingRefusal& refusal);

}  // namespace cufit::facts
