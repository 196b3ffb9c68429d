// SPDX-License-Identifier: Apache-2.0
// A program of several ranks: which of them are traced, what each takes, and how that changes with
// their number. The answer is that of the rank that takes most. All sizes in bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fit/answer/cards.h"
#include "fit/answer/traces.h"
#include "fit/prediction.h"

namespace cufit::fit {

inline constexpr size_t k_most_traced_ranks = 8;
// What the tracer says of a program whose ranks differ (program/sent_objects.py).
inline constexpr std::string_view k_stages = "stages of a pipeline";
inline constexpr size_t k_most_worlds = 12;
inline constexpr uint64_t k_most_ranks = 1u << 16;

// As its trace says; 1 and 0 where nothing is distributed.
uint64_t world_of(const formats::TraceEvents& events);
uint64_t rank_of(const formats::TraceEvents& events);

// The same storages, calls and marks of the same operators in the same order, and the same
// connections of NCCL.
bool same_events(const formats::TraceEvents& a, const formats::TraceEvents& b);

// Those worth a trace beside rank 0. `all`: up to k_most_traced_ranks of them, evenly apart, the
// last among them; else the last, where the trace of rank 0 says that ranks differ, and every stage
// of a pipeline of at most so many.
std::vector<uint64_t> ranks_worth(const formats::TraceEvents& first, bool all);

// One rank beside the one whose traces answer.
struct RankTraces {
  uint64_t rank = 0;
  Traces traces;                 // empty where it is like another
  std::optional<uint64_t> like;  // a rank with the same events
};

struct RankAnswer {
  uint64_t rank = 0;
  uint64_t peak_allocated = 0, peak_reserved = 0, peak_reserved_upper = 0, outside_allocator = 0;
  std::optional<uint64_t> like;  // a rank with the same events
  uint64_t in_all() const { return peak_reserved_upper + outside_allocator; }
};
RankAnswer rank_answer(uint64_t rank, const Prediction& prediction);

// The part of the peak of which the first has most more than the second: "weights", as in a
// report's parts, and how much. nullopt: it has more of nothing.
struct MoreOf {
  std::string part;
  uint64_t bytes = 0;
};
std::optional<MoreOf> more_of(const Prediction& first, const Prediction& second);

// The rank that takes most, of a group of so many.
struct WorldAnswer {
  uint64_t world = 0;
  uint64_t peak_allocated = 0, peak_reserved = 0, peak_reserved_upper = 0, outside_allocator = 0;
  uint64_t nccl = 0;  // a part of outside_allocator
  uint64_t batch = 0;  // of each rank; 0: not known
  uint64_t in_all() const { return peak_reserved_upper + outside_allocator; }
};
// On one card each, as it is without NCCL.
bool holds(const Card& card, const WorldAnswer& world);
// The least of those that fits; nullopt: none does.
std::optional<uint64_t> least_world(const Card& card, std::span<const WorldAnswer> worlds);

// `ask`: at most once for each of `worlds`, which ascend; nullopt: it could not be traced. All of
// them, or, with `search`, no more than say the least number for each card: more ranks take less, or
// the same.
using AskWorld = std::function<Result<std::optional<WorldAnswer>>(uint64_t)>;
Result<std::vector<WorldAnswer>> search_worlds(const std::vector<uint64_t>& worlds, bool search,
                                               const std::vector<Card>& cards, const AskWorld& ask);

// Nothing falls with more ranks: nothing is dealt out among them.
bool none_shrinks(std::span<const WorldAnswer> worlds);

}  // namespace cufit::fit
