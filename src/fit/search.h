// SPDX-License-Identifier: Apache-2.0
// Questions over many batch sizes: memory against batch, and the largest one that fits a card by
// its upper value. Each probe is a replay.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "fit/prediction.h"

namespace cufit::fit {

struct CurvePoint {
  uint64_t batch = 0;
  uint64_t peak_allocated = 0;
  uint64_t peak_reserved = 0;
  uint64_t peak_reserved_upper = 0;
  bool fits = false;
  bool operator==(const CurvePoint&) const = default;
};

// Batch sizes that cannot be answered are left out.
std::vector<CurvePoint> curve(const StepProgram& program, std::span<const uint64_t> batches,
                              const Setup& setup);
// Up to `count` of them: the traced ones, powers of two and what lies around `wanted`, ascending.
std::vector<uint64_t> curve_batches(const StepProgram& program, uint64_t wanted, size_t count);

struct LargestBatch {
  uint64_t batch = 0;              // 0: not even a batch of one fits, or nothing could be answered
  bool unbounded = false;          // the highest that was looked at fits: `batch` is that one
  bool only_traced = false;        // the traces answer for their own batch sizes alone
  std::vector<CurvePoint> probes;  // by batch
};

// `setup.capacity` bounds. `highest`: where to stop looking.
LargestBatch largest_batch(const StepProgram& program, const Setup& setup,
                           uint64_t highest = 1u << 20);

// The upper value of a batch size without a bound; nullopt: it cannot be answered.
using UpperAt = std::function<std::optional<uint64_t>(uint64_t)>;
// The largest of those up to `fits` whose upper value alone is at most `capacity`: with it no cached
// memory has to be given back. 0: none.
uint64_t largest_within(const LargestBatch& fits, uint64_t capacity, const UpperAt& upper);

// One plan of several (settings, cards, other programs), each over its own batch sizes; on as many
// threads as there are processors.
struct Plan {
  const StepProgram* program = nullptr;
  Setup setup;
  std::vector<uint64_t> batches;
};
std::vector<std::vector<CurvePoint>> curves(std::span<const Plan> plans);

}  // namespace cufit::fit
