// SPDX-License-Identifier: Apache-2.0
// Depth-first search for jobs of several GPUs: small fleets alone.
#pragma once

#include <cstdint>
#include <vector>

#include "fit/pack/fleet_assignment.h"
#include "fit/pack/fleet_filling.h"

namespace cufit::pack {

// Which sets of GPUs are looked at: all, at most k_most_sets of a model, of GPUs in the same state one
// number of each; or one set for each model: GPUs in use and the fullest first, then the smallest or
// the largest; or the emptiest.
enum class Pick { all, then_smallest, then_largest, emptiest };
inline constexpr size_t k_most_sets = 4096;
// Sets of GPUs of `node` that the job could have now.
std::vector<std::vector<uint32_t>> choices_on(const FleetProblem& fleet,
                                              const FleetFilling& filling, uint32_t job,
                                              uint32_t node, Pick pick);

// Nothing tells the two jobs apart.
bool are_alike(const FleetProblem& fleet, uint32_t a, uint32_t b);

// More jobs, then fewer GPUs or more headroom.
bool is_better(const FleetAssignment& a, const FleetAssignment& b);

// Begins with `best`. Where the search comes to its end its bounds are what was found.
// `possible`: the jobs that some empty machine holds.
void search_fleet(const FleetProblem& fleet, std::vector<uint32_t> possible, uint64_t node_limit,
                  FleetAssignment& best);

}  // namespace cufit::pack
