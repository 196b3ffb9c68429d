// SPDX-License-Identifier: Apache-2.0
// What guard-bench starts: itself, as a program that uses the driver of the described card. Each prints one line.
#pragma once

#include <ctime>

#include <cstdint>

namespace guard_bench {

inline uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

// Each says "ready" when it has a context, and ends when its standard input does.
//   allocate COUNT   waits for a line; "MEDIAN P99 FREE" in nanoseconds of as many allocations of 4 MiB and their frees by
//                    the guard, then of the same calls past it, which are made in turns
//   context          "NS" of cuInit and the first context
//   hold BYTES       allocates them and waits
//   claim BYTES      waits for a line, then asks for them until they are there; "NS" of that moment
int child(int count, char** arguments);

}  // namespace guard_bench
