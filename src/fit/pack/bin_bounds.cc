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

bool any_divided(const Problem& problem) {
  return std::any_of(problem.kinds.begin(), problem.kinds.end(),
                     [](const BinKind& kind) { return kind.divided(); });
}

// Capacities of the GPUs, the largest first.
std::vector<uint32_t> capacities(const Problem& problem) {
  std::vector<uint32_t> out;
  for (const uint32_t kind : problem.bins) out.push_back(problem.kinds[kind].mib);
  std::sort(out.begin(), out.end(), std::greater<>());
  return out;
}

// The part of a GPU that an item takes at least, as a fraction.
struct Part {
  uint64_t of = 0, whole = 1;
};
Part least_part(const Problem& problem, uint32_t item) {
  Part least{1, 1};
  for (size_t k = 0; k < problem.kinds.size(); ++k) {
    const BinKind& kind = problem.kinds[k];
    const uint32_t mib = problem.items[item].mib[k];
    if (!holds_alone(kind, mib)) continue;
    const Part part = kind.divided() ? Part{kind.slots[slot_of(kind, mib)].units, kind.units}
                                     : Part{mib, kind.mib};
    if (part.of * least.whole < least.of * part.whole) least = part;
  }
  return least;
}

// Each function makes of the parts of a GPU's jobs, which are 1 at most together, others of which
// the same holds; it goes up with the part. In k_whole, rounded down.
constexpr uint64_t k_most_steps = 24;
uint64_t stepped(const Part& part, uint64_t steps) {
  if (steps == 0 || (steps + 1) * part.of % part.whole == 0) return part.of * k_whole / part.whole;
  return (steps + 1) * part.of / part.whole * k_whole / steps;
}
// What is larger than 1 - least takes all, what is smaller than `least` nothing.
uint64_t cut(const Part& part, const Part& least) {
  if (part.of * least.whole < least.of * part.whole) return 0;
  // 1 - least < part
  if ((least.whole - least.of) * part.whole < part.of * least.whole) return k_whole;
  return part.of * k_whole / part.whole;
}

// Calls `use` with the parts of `items` under each function, the smallest first.
void with_each_function(const Problem& problem, const std::vector<uint32_t>& items,
                        const std::function<void(const std::vector<uint64_t>&)>& use) {
  std::vector<Part> parts;
  for (const uint32_t item : items) parts.push_back(least_part(problem, item));
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.of * b.whole < b.of * a.whole; });
  std::vector<uint64_t> made(parts.size());
  for (uint64_t steps = 0; steps <= k_most_steps; ++steps) {
    for (size_t i = 0; i < parts.size(); ++i) made[i] = stepped(parts[i], steps);
    use(made);
  }
  for (const Part& least : parts) {
    if (2 * least.of > least.whole) break;
    for (size_t i = 0; i < parts.size(); ++i) made[i] = cut(parts[i], least);
    use(made);
  }
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
  const bool divided = any_divided(problem);
  uint64_t mib = 0;
  for (const uint32_t item : items) mib += least_mib(problem, item);
  uint32_t bound = items.empty() ? 0 : 1;
  if (!divided) {
    uint32_t by_sum = 0;
    for (uint64_t room = 0; by_sum < rooms.size() && room < mib; ++by_sum) room += rooms[by_sum];
    bound = std::max(bound, by_sum);
  }
  with_each_function(problem, items, [&](const std::vector<uint64_t>& parts) {
    uint64_t sum = 0;
    for (const uint64_t part : parts) sum += part;
    bound = std::max(bound, static_cast<uint32_t>((sum + k_whole - 1) / k_whole));
  });
  return bound;
}

uint32_t placed_bound(const Problem& problem, const std::vector<uint32_t>& items) {
  uint64_t room = 0;
  for (const uint32_t mib : capacities(problem)) room += mib;
  if (any_divided(problem)) room = UINT64_MAX;
  uint32_t bound = 0;
  for (uint64_t mib = 0; bound < items.size(); ++bound) {
    mib += least_mib(problem, items[bound]);
    if (mib > room) break;
  }
  const uint64_t bins = problem.bins.size() * k_whole;
  with_each_function(problem, items, [&](const std::vector<uint64_t>& parts) {
    uint32_t placed = 0;
    for (uint64_t sum = 0; placed < parts.size(); ++placed) {
      sum += parts[placed];
      if (sum > bins) break;
    }
    bound = std::min(bound, placed);
  });
  return bound;
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

uint32_t headroom_of_any_choice(const Problem& problem, const std::vector<uint32_t>& items) {
  const std::vector<uint32_t> rooms = capacities(problem);
  return rooms.empty() || items.empty() ? 0 : rooms[0] - least_mib(problem, items[0]);
}

}  // namespace cufit::pack
