// SPDX-License-Identifier: Apache-2.0
// The search of `cufit pack` against every assignment there is, on small instances; on large ones
// against what must hold of any answer.
#include <algorithm>
#include <array>
#include <random>

#include "fit/pack/bin_bounds.h"
#include "fit/pack/bin_search.h"
#include "fit/pack/bins.h"
#include "fit/pack/slot_layout.h"

namespace cufit::pack {
namespace {

constexpr uint64_t k_plenty = 50'000'000;

// One after another in every place, without the rules of lay_out().
bool laid_out(const std::vector<Extent>& extents, size_t next, uint64_t taken, uint32_t units) {
  if (next == extents.size()) return true;
  for (const uint32_t start : extents[next].starts) {
    const uint64_t mask = ((uint64_t{1} << extents[next].units) - 1) << start;
    if (start + extents[next].units > units || (taken & mask) != 0) continue;
    if (laid_out(extents, next + 1, taken | mask, units)) return true;
  }
  return false;
}

// Whether the items fit on one GPU, by trying each slot for each item.
bool one_holds(const BinKind& kind, const std::vector<uint32_t>& sizes, size_t next,
               std::vector<size_t>& types) {
  if (!kind.divided()) {
    uint64_t sum = 0;
    for (const uint32_t size : sizes) sum += size;
    return sum <= kind.mib && std::count(sizes.begin(), sizes.end(), k_never) == 0;
  }
  if (next == sizes.size()) {
    std::vector<Extent> extents;
    for (size_t t = 0; t < kind.slots.size(); ++t) {
      const auto many = std::count(types.begin(), types.end(), t);
      if (static_cast<uint32_t>(many) > kind.slots[t].most) return false;
      for (long i = 0; i < many; ++i)
        extents.push_back({kind.slots[t].units, kind.slots[t].starts});
    }
    return laid_out(extents, 0, 0, kind.units);
  }
  for (size_t t = 0; t < kind.slots.size(); ++t) {
    if (sizes[next] == k_never || sizes[next] > kind.slots[t].mib) continue;
    types.push_back(t);
    const bool fits = one_holds(kind, sizes, next + 1, types);
    types.pop_back();
    if (fits) return true;
  }
  return false;
}

struct Best {
  uint32_t placed = 0, used = 0, headroom = 0;
};

// Every assignment: the most jobs, then the fewest GPUs, and the most headroom with as many jobs.
Best brute_force(const Problem& problem) {
  const size_t bins = problem.bins.size();
  std::vector<std::vector<char>> holds(bins);  // by set of items
  const size_t sets = size_t{1} << problem.items.size();
  for (size_t bin = 0; bin < bins; ++bin) {
    const uint32_t kind = problem.bins[bin];
    for (size_t set = 0; set < sets; ++set) {
      std::vector<uint32_t> sizes;
      for (size_t i = 0; i < problem.items.size(); ++i)
        if ((set >> i & 1) != 0) sizes.push_back(problem.items[i].mib[kind]);
      std::vector<size_t> types;
      holds[bin].push_back(one_holds(problem.kinds[kind], sizes, 0, types));
    }
  }
  Best best;
  std::vector<size_t> set_of(bins, 0);
  const auto visit = [&](const auto& self, size_t item, uint32_t placed) -> void {
    if (item == problem.items.size()) {
      uint32_t used = 0, headroom = k_never;
      for (size_t bin = 0; bin < bins; ++bin) {
        if (set_of[bin] == 0) continue;
        if (!holds[bin][set_of[bin]]) return;
        ++used;
        uint64_t load = 0;
        for (size_t i = 0; i < problem.items.size(); ++i)
          if ((set_of[bin] >> i & 1) != 0) load += problem.items[i].mib[problem.bins[bin]];
        headroom = std::min<uint32_t>(
            headroom, static_cast<uint32_t>(problem.kinds[problem.bins[bin]].mib - load));
      }
      if (placed == 0) headroom = 0;
      if (placed > best.placed) best = {placed, used, headroom};
      if (placed == best.placed) {
        best.used = std::min(best.used, used);
        best.headroom = std::max(best.headroom, headroom);
      }
      return;
    }
    self(self, item + 1, placed);
    for (size_t bin = 0; bin < bins; ++bin) {
      set_of[bin] |= size_t{1} << item;
      if (holds[bin][set_of[bin]]) self(self, item + 1, placed + 1);
      set_of[bin] &= ~(size_t{1} << item);
    }
  };
  visit(visit, 0, 0);
  return best;
}

// A GPU like those of NVIDIA: eighths, of which seven can be alone.
BinKind like_h100(uint32_t eighth) {
  BinKind kind;
  kind.mib = 8 * eighth;
  kind.units = 8;
  kind.slots = {{eighth, 1, {0, 1, 2, 3, 4, 5, 6}, 7},
                {2 * eighth, 2, {0, 2, 4, 6}, 4},
                {4 * eighth, 4, {0, 4}, 2},
                {8 * eighth, 8, {0}, 1}};
  return kind;
}

struct Shape {
  uint32_t kinds = 1, bins = 3, items = 6;
  bool divided = false, contexts = false;
};

Problem random_problem(std::mt19937& random, const Shape& shape) {
  const auto from_to = [&](uint32_t a, uint32_t b) { return a + random() % (b - a + 1); };
  Problem problem;
  for (uint32_t k = 0; k < shape.kinds; ++k) {
    if (shape.divided && k == 0) {
      problem.kinds.push_back(like_h100(from_to(4, 12)));
      continue;
    }
    BinKind kind;
    kind.mib = from_to(20, 100);
    problem.kinds.push_back(kind);
  }
  for (uint32_t i = 0; i < shape.bins; ++i)
    problem.bins.push_back(i < shape.kinds ? i : random() % shape.kinds);
  // Sizes from a narrow range are the hard ones: many are equal, many fill a GPU exactly.
  const uint32_t low = from_to(1, 30), high = low + from_to(0, 40);
  for (uint32_t i = 0; i < shape.items; ++i) {
    Item item;
    const uint32_t size = from_to(low, high);
    for (uint32_t k = 0; k < shape.kinds; ++k)
      item.mib.push_back(shape.contexts && random() % 12 == 0 ? k_never
                         : shape.contexts                     ? size + random() % 3
                                                              : size);
    problem.items.push_back(item);
  }
  return problem;
}

void expect_holds(const Problem& problem, const Assignment& found) {
  ASSERT_EQ(found.bin_of.size(), problem.items.size());
  uint32_t placed = 0, used = 0;
  for (uint32_t bin = 0; bin < problem.bins.size(); ++bin) {
    const uint32_t kind = problem.bins[bin];
    std::vector<uint32_t> sizes;
    for (size_t i = 0; i < problem.items.size(); ++i)
      if (found.bin_of[i] == bin) sizes.push_back(problem.items[i].mib[kind]);
    std::vector<size_t> types;
    EXPECT_TRUE(one_holds(problem.kinds[kind], sizes, 0, types)) << "GPU " << bin;
    placed += static_cast<uint32_t>(sizes.size());
    used += sizes.empty() ? 0 : 1;
  }
  EXPECT_EQ(placed, found.placed);
  EXPECT_EQ(used, found.used);
  EXPECT_LE(found.placed, found.most_placed);
  if (found.placed == found.most_placed) {
    EXPECT_GE(found.used, found.fewest_used);
  }
}

class Shapes : public testing::TestWithParam<Shape> {};

TEST_P(Shapes, FewestAgreesWithEveryAssignment) {
  std::mt19937 random(31);
  size_t proved = 0;
  for (int round = 0; round < 200; ++round) {
    const Problem problem = random_problem(random, GetParam());
    const Best best = brute_force(problem);
    const Assignment found = fewest_bins(problem, k_plenty);
    expect_holds(problem, found);
    EXPECT_GE(found.most_placed, best.placed) << round;
    const bool optimal = found.placed == found.most_placed && found.used == found.fewest_used;
    // What is called optimal is, and what is not comes close.
    if (optimal) {
      ++proved;
      EXPECT_EQ(found.placed, best.placed) << round;
      EXPECT_EQ(found.used, best.used) << round;
    }
    EXPECT_LE(found.placed, best.placed) << round;
    if (ordered_alike(problem, possible_items(problem))) {
      EXPECT_EQ(found.placed, best.placed) << round;
      EXPECT_EQ(found.used, best.used) << round;
      EXPECT_TRUE(optimal) << round;
    }
  }
  EXPECT_GE(proved, 100u);
}

// The search alone, without the quick fill before it.
TEST_P(Shapes, YesAndNoAgreeWithEveryAssignment) {
  std::mt19937 random(13);
  int yes = 0, no = 0;
  for (int round = 0; round < 200; ++round) {
    const Problem problem = random_problem(random, GetParam());
    std::vector<uint32_t> items, bins;
    for (uint32_t i = 0; i < problem.items.size(); ++i) items.push_back(i);
    for (uint32_t i = 0; i < problem.bins.size(); ++i) bins.push_back(i);
    BinSearch search(problem, items);
    const Fits fits = search.run(bins, 0, k_plenty);
    const bool all = brute_force(problem).placed == problem.items.size();
    EXPECT_EQ(fits == Fits::yes, all) << round;
    EXPECT_NE(fits, Fits::unknown) << round;
    (all ? yes : no) += 1;
  }
  EXPECT_GT(yes, 10);
  EXPECT_GT(no, 10);
}

TEST_P(Shapes, HeadroomAgreesWithEveryAssignment) {
  if (GetParam().divided) return;  // it is of GPUs that are shared
  std::mt19937 random(77);
  for (int round = 0; round < 200; ++round) {
    const Problem problem = random_problem(random, GetParam());
    const Best best = brute_force(problem);
    const Assignment found = most_headroom(problem, k_plenty);
    expect_holds(problem, found);
    EXPECT_GE(found.most_headroom, found.headroom);
    if (!ordered_alike(problem, possible_items(problem))) continue;
    EXPECT_EQ(found.placed, best.placed) << round;
    if (found.placed < problem.items.size()) continue;  // which of them is not for brute force
    EXPECT_EQ(found.headroom, best.headroom) << round;
    EXPECT_EQ(found.headroom, found.most_headroom) << round;
  }
}

// Sizes with no one order (each card predicted for itself), and no room for all: which jobs are left
// out decides, and what is called the best is.
TEST(BinSearch, WhatIsProvedHoldsForEveryChoiceOfJobs) {
  std::mt19937 random(1092);
  const auto from_to = [&](uint32_t a, uint32_t b) {
    return a + static_cast<uint32_t>(random() % (b - a + 1));
  };
  for (int round = 0; round < 6000; ++round) {
    const uint32_t bins = from_to(2, 3), items = from_to(3, 5);
    Problem problem;
    for (uint32_t k = 0; k < 3; ++k) problem.kinds.push_back(BinKind{from_to(20, 60), 0, {}});
    for (uint32_t bin = 0; bin < bins; ++bin) problem.bins.push_back(bin);
    for (uint32_t i = 0; i < items; ++i) {
      problem.items.push_back({});
      for (const BinKind& kind : problem.kinds) {
        const uint32_t mib = from_to(1, 60);
        problem.items.back().mib.push_back(mib > kind.mib ? k_never : mib);
      }
    }
    const Best best = brute_force(problem);
    const Assignment spread = most_headroom(problem, k_plenty);
    if (spread.placed == best.placed) {
      EXPECT_GE(spread.most_headroom, best.headroom) << round;
    }
    const Assignment fewest = fewest_bins(problem, k_plenty);
    if (fewest.placed == best.placed) {
      EXPECT_LE(fewest.fewest_used, best.used) << round;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Random, Shapes,
                         testing::Values(Shape{1, 3, 7, false, false}, Shape{2, 3, 7, false, false},
                                         Shape{3, 3, 6, false, true}, Shape{1, 2, 6, true, false},
                                         Shape{2, 3, 6, true, false}, Shape{2, 4, 5, true, true}));

TEST(BinSearch, LayoutsAgreeWithEveryPlace) {
  const BinKind kind = like_h100(10);
  size_t fitting = 0;
  for (uint32_t a = 0; a <= 8; ++a)
    for (uint32_t b = 0; b <= 4; ++b)
      for (uint32_t c = 0; c <= 2; ++c)
        for (uint32_t d = 0; d <= 1; ++d) {
          std::vector<Extent> extents;
          for (size_t t = 0; t < 4; ++t)
            for (uint32_t i = 0; i < std::array{a, b, c, d}[t]; ++i)
              extents.push_back({kind.slots[t].units, kind.slots[t].starts});
          const std::optional<std::vector<uint32_t>> starts = lay_out(extents, 8);
          EXPECT_EQ(starts.has_value(), laid_out(extents, 0, 0, 8)) << a << b << c << d;
          if (!starts) continue;
          ++fitting;
          uint64_t taken = 0;
          for (size_t i = 0; i < extents.size(); ++i) {
            const uint64_t mask = ((uint64_t{1} << extents[i].units) - 1) << (*starts)[i];
            EXPECT_EQ(taken & mask, 0u);
            taken |= mask;
          }
        }
  EXPECT_GT(fitting, 10u);
}

// 64 jobs on 16 GPUs: what people have. The steps are bounded, and what is said holds.
TEST(BinSearch, LargeOnesHoldAndMostAreProved) {
  std::mt19937 random(5);
  int proved = 0;
  for (int round = 0; round < 20; ++round) {
    Problem problem;
    problem.kinds.push_back({81'000, 0, {}});
    problem.bins.assign(16, 0);
    for (int i = 0; i < 64; ++i)
      problem.items.push_back({{500 + static_cast<uint32_t>(random() % 36'000)}});
    const Assignment found = fewest_bins(problem, 600'000);
    expect_holds(problem, found);
    EXPECT_LE(found.nodes, 700'000u);
    if (found.placed == found.most_placed && found.used == found.fewest_used) ++proved;
  }
  EXPECT_GE(proved, 18);
}

// The first of two equal jobs fills the second GPU; the other goes before it.
TEST(BinSearch, AJobThatFillsAGpuEndsTheOrderOfEqualOnes) {
  Problem problem;
  problem.kinds = {{10, 0, {}}, {7, 0, {}}};
  problem.bins = {0, 1};
  problem.items = {{{7, 7}}, {{7, 7}}};
  BinSearch search(problem, {0, 1});
  EXPECT_EQ(search.run({0, 1}, 0, 1000), Fits::yes);
  EXPECT_EQ(search.run({0, 1}, 1, 1000), Fits::no);  // 1 MiB of each stays free
}

TEST(BinSearch, OneUnitMoreThanFitsIsProved) {
  Problem problem;
  problem.kinds.push_back({100, 0, {}});
  problem.bins.assign(3, 0);
  for (int i = 0; i < 4; ++i) problem.items.push_back({{51}});
  const Assignment found = fewest_bins(problem, 1000);
  EXPECT_EQ(found.placed, 3u);
  EXPECT_EQ(found.most_placed, 3u);
  EXPECT_EQ(found.used, 3u);
}

TEST(BinSearch, TheSmallestGpuThatIsEnoughIsTaken) {
  Problem problem;
  problem.kinds = {{80, 0, {}}, {24, 0, {}}};
  problem.bins = {0, 1};
  problem.items = {{{20, 20}}};
  const Assignment found = fewest_bins(problem, 1000);
  EXPECT_EQ(found.bin_of, std::vector<uint32_t>{1});
}

TEST(BinSearch, WithoutStepsTheBoundsAreSaid) {
  Problem problem;
  problem.kinds.push_back({100, 0, {}});
  problem.bins.assign(4, 0);
  for (const uint32_t size : {60u, 50u, 50u, 40u, 30u, 30u, 30u}) problem.items.push_back({{size}});
  const Assignment found = fewest_bins(problem, 1);
  expect_holds(problem, found);
  EXPECT_GE(found.most_placed, 7u);
}

}  // namespace
}  // namespace cufit::pack
