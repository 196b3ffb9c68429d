// SPDX-License-Identifier: Apache-2.0
#include "fit/pack/bin_bounds.h"

#include <algorithm>
#include <functional>

#include "fit/pack/slot_layout.h"

namespace cufit::pack {
namespace {

constexpr uint64_t k_whole = uint64_t{1} << 32;

bool holds_alone(const BinKind& kind, uint32_t mib) {
  if (mib == k_never || mib > kind.mib) return false;
  return !kind.divided() || slot_of(kind, mib) < kind.slots.size();
}

// Capacities of the GPUs, the largest first.
std::vector<uint32_t> capacities(const Problem& problem) {
  std::vector<uint32_t> out;
  for (const uint32_t kind : problem.bins) out.push_back(problem.kinds[kind].mib);
  std::sort(out.begin(), out.end(), std::greater<>());
  return out;
}

// The part of a GPU that an item takes at least, of k_whole.
uint64_t least_share(const Problem& problem, uint32_t item) {
  uint64_t least = k_whole;
  for (size_t k = 0; k < problem.kinds.size(); ++k) {
    const BinKind& kind = problem.kinds[k];
    const uint32_t mib = problem.items[item].mib[k];
    if (!holds_alone(kind, mib)) continue;
    least = std::min(least, kind.divided()
                                ? kind.slots[slot_of(kind, mib)].units * k_whole / kind.units
                                : mib * k_whole / kind.mib);
  }
  return least;
}

}  // namespace

uint32_t least_mib(const Problem& problem, uint32_t item) {
  uint32_t least = k_never;
  for (size_t k = 0; k < problem.kinds.size(); ++k)
    if (holds_alone(problem.kinds[k], problem.items[item].mib[k]))
      least = std::min(least, problem.items[item].mib[k]);
  return least;
}

std::vector<uint32_t> possible_items(const Problem& problem) {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < problem.items.size(); ++i) {
    const bool possible = std::any_of(problem.bins.begin(), problem.bins.end(), [&](uint32_t kind) {
      return holds_alone(problem.kinds[kind], problem.items[i].mib[kind]);
    });
    if (possible) out.push_back(i);
  }
  std::stable_sort(out.begin(), out.end(), [&](uint32_t a, uint32_t b) {
    return least_mib(problem, a) < least_mib(problem, b);
  });
  return out;
}

bool ordered_alike(const Problem& problem, const std::vector<uint32_t>& items) {
  for (size_t i = 1; i < items.size(); ++i)
    for (size_t k = 0; k < problem.kinds.size(); ++k)
      if (problem.items[items[i - 1]].mib[k] > problem.items[items[i]].mib[k]) return false;
  return true;
}

uint32_t fewest_bound(const Problem& problem, const std::vector<uint32_t>& items) {
  const std::vector<uint32_t> rooms = capacities(problem);
  uint64_t mib = 0, share = 0;
  for (const uint32_t item : items) {
    mib += least_mib(problem, item);
    share += least_share(problem, item);
  }
  uint32_t by_sum = 0;
  for (uint64_t room = 0; by_sum < rooms.size() && room < mib; ++by_sum) room += rooms[by_sum];
  const auto by_share = static_cast<uint32_t>((share + k_whole - 1) / k_whole);
  // No two that are larger than half of the largest GPU share one.
  uint32_t apart = 0;
  for (const uint32_t item : items)
    if (!rooms.empty() && uint64_t{2} * least_mib(problem, item) > rooms[0]) ++apart;
  return std::max({by_sum, by_share, apart, items.empty() ? 0u : 1u});
}

uint32_t placed_bound(const Problem& problem, const std::vector<uint32_t>& items) {
  uint64_t room = 0;
  for (const uint32_t mib : capacities(problem)) room += mib;
  const uint64_t bins = problem.bins.size() * k_whole;
  std::vector<uint64_t> shares;
  for (const uint32_t item : items) shares.push_back(least_share(problem, item));
  std::sort(shares.begin(), shares.end());
  uint32_t placed = 0;
  uint64_t mib = 0, share = 0;
  for (size_t i = 0; i < items.size(); ++i, ++placed) {
    mib += least_mib(problem, items[i]);
    share += shares[i];
    if (mib > room || share > bins) break;
  }
  return placed;
}

uint32_t headroom_bound(const Problem& problem, const std::vector<uint32_t>& items) {
  const std::vector<uint32_t> rooms = capacities(problem);
  if (rooms.empty() || items.empty()) return 0;
  uint64_t mib = 0;
  for (const uint32_t item : items) mib += least_mib(problem, item);
  // Were the load even on the n largest GPUs.
  uint64_t room = 0, best = 0;
  for (size_t n = 1; n <= std::min(rooms.size(), items.size()); ++n) {
    room += rooms[n - 1];
    if (room >= mib) best = std::max(best, (room - mib) / n);
  }
  // `items` goes up: of the n + 1 largest two share one of n GPUs, of the 2 n + 1 largest three.
  const auto lone = [&](size_t index) -> uint64_t { return least_mib(problem, items[index]); };
  const size_t bins = rooms.size();
  for (size_t together = 1; (together - 1) * bins + 1 <= items.size(); ++together) {
    const size_t first = items.size() - ((together - 1) * bins + 1);
    uint64_t load = 0;
    for (size_t i = first; i < first + together; ++i) load += lone(i);
    best = std::min<uint64_t>(best, load > rooms[0] ? 0 : rooms[0] - load);
  }
  return static_cast<uint32_t>(best);
}

}  // namespace cufit::pack
