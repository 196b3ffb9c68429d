// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/ranks.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/number.h"
#include "fit/trace_parts.h"

namespace cufit::fit {
namespace {

using formats::TraceCall;
using formats::TraceEvent;
using formats::TraceEventKind;
using formats::TraceEvents;

bool same_call(const TraceEvents& a, const TraceCall& x, const TraceEvents& b, const TraceCall& y) {
  const std::span<const uint64_t> of_a = a.numbers_of(x), of_b = b.numbers_of(y);
  return same_site(a, x.site, b, y.site) &&
         std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end());
}

bool same_event(const TraceEvents& a, const TraceEvent& x, const TraceEvents& b,
                const TraceEvent& y) {
  if (x.kind != y.kind || x.bytes != y.bytes) return false;
  if (x.kind == TraceEventKind::call) return same_call(a, a.calls[x.index], b, b.calls[y.index]);
  return x.index == y.index &&
         (x.kind != TraceEventKind::alloc || same_site(a, x.site, b, y.site));
}

bool same_connections(const TraceEvents& a, const TraceEvents& b) {
  return std::all_of(k_nccl_facts.begin(), k_nccl_facts.end(),
                     [&](std::string_view key) { return a.fact(key) == b.fact(key); });
}

// Less than this is rounding.
constexpr uint64_t k_shrinks_by_per_mille = 20;

}  // namespace

uint64_t world_of(const TraceEvents& events) {
  const uint64_t world = parse_uint(events.fact("world_size")).value_or(1);
  return std::clamp<uint64_t>(world, 1, k_most_ranks);
}

uint64_t rank_of(const TraceEvents& events) {
  return std::min(parse_uint(events.fact("rank")).value_or(0), world_of(events) - 1);
}

bool same_events(const TraceEvents& a, const TraceEvents& b) {
  return a.categories == b.categories && same_connections(a, b) &&
         std::equal(
             a.events.begin(), a.events.end(), b.events.begin(), b.events.end(),
             [&](const TraceEvent& x, const TraceEvent& y) { return same_event(a, x, b, y); });
}

std::vector<uint64_t> ranks_worth(const TraceEvents& first, bool all) {
  const uint64_t world = world_of(first), own = rank_of(first);
  std::vector<uint64_t> out;
  // Of a pipeline each stage says what the next one receives.
  const bool in_turn = first.fact("ranks_differ") == k_stages && world <= k_most_traced_ranks;
  if (!all && !in_turn) {
    if (world > 1 && !first.fact("ranks_differ").empty()) out.push_back(world - 1);
  } else {
    const uint64_t count = std::min<uint64_t>(world, k_most_traced_ranks);
    for (uint64_t i = 0; i < count; ++i)
      out.push_back(count == world ? i : i * (world - 1) / (count - 1));
  }
  out.erase(std::remove(out.begin(), out.end(), own), out.end());
  return out;
}

RankAnswer rank_answer(uint64_t rank, const Prediction& prediction) {
  return {rank,
          prediction.peak_allocated,
          prediction.peak_reserved,
          prediction.peak_reserved_upper,
          prediction.outside_allocator,
          std::nullopt};
}

std::optional<MoreOf> more_of(const Prediction& first, const Prediction& second) {
  const Breakdown &a = first.breakdown, &b = second.breakdown;
  std::optional<MoreOf> most;
  for (const auto& [part, of_first, of_second] :
       {std::tuple("weights", a.weights, b.weights),
        std::tuple("buffers", a.buffers, b.buffers),
        std::tuple("gradients", a.gradients, b.gradients),
        std::tuple("optimizer_state", a.optimizer_state, b.optimizer_state),
        std::tuple("inputs", a.inputs, b.inputs),
        std::tuple("gathered", a.gathered, b.gathered),
        std::tuple("communication", a.communication, b.communication),
        std::tuple("activations", a.activations, b.activations),
        std::tuple("temporaries", a.temporaries, b.temporaries),
        std::tuple("workspaces", a.workspaces, b.workspaces),
        std::tuple("other", a.other, b.other),
        std::tuple("fragmentation", a.fragmentation, b.fragmentation),
        std::tuple("outside_allocator", first.outside_allocator, second.outside_allocator)}) {
    if (of_first <= of_second) continue;
    if (!most || of_first - of_second > most->bytes) most = MoreOf{part, of_first - of_second};
  }
  return most;
}

bool none_shrinks(std::span<const WorldAnswer> worlds) {
  const auto beyond_one = [](const WorldAnswer& at) { return at.world > 1; };
  const auto first = std::find_if(worlds.begin(), worlds.end(), beyond_one);
  if (first == worlds.end() || first + 1 == worlds.end()) return false;
  const uint64_t least = first->peak_reserved - first->peak_reserved / 1000 * k_shrinks_by_per_mille;
  return std::all_of(first + 1, worlds.end(),
                     [&](const WorldAnswer& at) { return at.peak_reserved >= least; });
}

bool holds(const Card& card, const WorldAnswer& world) {
  return card.usable >= world.nccl && world.peak_reserved_upper <= card.usable - world.nccl;
}

std::optional<uint64_t> least_world(const Card& card, std::span<const WorldAnswer> worlds) {
  for (const WorldAnswer& world : worlds)
    if (holds(card, world)) return world.world;
  return std::nullopt;
}

Result<std::vector<WorldAnswer>> search_worlds(const std::vector<uint64_t>& worlds, bool search,
                                               const std::vector<Card>& cards,
                                               const AskWorld& answer_for) {
  std::map<uint64_t, std::optional<WorldAnswer>> asked;
  const auto at = [&](uint64_t world) -> Result<void> {
    if (asked.count(world) != 0) return {};
    CUFIT_TRY(answer, answer_for(world));
    asked[world] = answer;
    return {};
  };
  const auto told = [&] {
    std::vector<WorldAnswer> out;
    for (const auto& [world, answer] : asked)
      if (answer) out.push_back(*answer);
    return out;
  };
  // Both ends, and the least number that has another to share with.
  for (size_t i = 0; i < worlds.size(); ++i)
    if (!search || i < 2 || i + 1 == worlds.size())
      if (Result<void> done = at(worlds[i]); !done) return done.error();
  if (!search || none_shrinks(told())) return told();
  for (const Card& card : cards) {
    size_t first = 0, end = worlds.size();
    while (first < end) {
      const size_t middle = (first + end) / 2;
      if (Result<void> done = at(worlds[middle]); !done) return done.error();
      const std::optional<WorldAnswer>& answer = asked[worlds[middle]];
      if (!answer) {  // it could not be traced: on which side of it the least lies is not told
        for (bool held = false; first < end && !held; ++first) {
          if (Result<void> done = at(worlds[first]); !done) return done.error();
          held = asked[worlds[first]] && holds(card, *asked[worlds[first]]);
        }
        break;
      }
      if (holds(card, *answer))
        end = middle;
      else
        first = middle + 1;
    }
  }
  return told();
}

}  // namespace cufit::fit
