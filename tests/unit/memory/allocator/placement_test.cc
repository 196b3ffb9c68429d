// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/placement.h"

#include <gtest/gtest.h>

#include <random>

#include "memory/allocator/rounding.h"

namespace cufit::memory {
namespace placement_test {

constexpr uint64_t k_top = uint64_t{1} << 46;
using Kind = PlacementStep::Kind;
using CallKind = RecordedCall::Kind;

class Calls {
 public:
  void alloc(uint64_t address, uint64_t size) {
    calls.push_back({{CallKind::segment_alloc, address, size}, event_++});
  }
  void free(uint64_t address, uint64_t size) {
    calls.push_back({{CallKind::segment_free, address, size}, event_++});
  }
  std::vector<PlacedCall> calls;

 private:
  uint32_t event_ = 0;
};

// The addresses that the calls' sizes get when the steps are applied at their events.
std::vector<uint64_t> placed(const Placement& placement, const std::vector<PlacedCall>& calls) {
  AddressSpace space(placement.top);
  std::vector<uint64_t> addresses;
  auto next = placement.steps.begin();
  for (const PlacedCall& call : calls) {
    for (; next != placement.steps.end() && next->event <= call.event; ++next) apply(*next, space);
    if (call.call.kind == CallKind::segment_alloc) {
      addresses.push_back(space.place(call.call.size));
    } else {
      space.release(call.call.address, call.call.size);
    }
  }
  return addresses;
}

std::vector<uint64_t> recorded(const std::vector<PlacedCall>& calls) {
  std::vector<uint64_t> addresses;
  for (const PlacedCall& call : calls)
    if (call.call.kind == CallKind::segment_alloc) addresses.push_back(call.call.address);
  return addresses;
}

TEST(Placement, TheDriversRuleNeedsNoStep) {
  Calls run;
  run.alloc(k_top - 32 * k_mib, 20 * k_mib);
  run.alloc(k_top - 96 * k_mib, 40 * k_mib);
  run.alloc(k_top - 56 * k_mib, 2 * k_mib);  // the lowest rest
  const Placement placement = infer_placement(run.calls, {});
  EXPECT_EQ(placement.top, k_top);
  EXPECT_TRUE(placement.steps.empty());
  EXPECT_EQ(placed(placement, run.calls), recorded(run.calls));
}

TEST(Placement, ALayoutOfAnotherKindIsNoticed) {
  Calls side_by_side, by_the_rule;
  AddressSpace space(k_top);
  uint64_t low = k_top;
  for (uint64_t i = 0; i < 40; ++i) {
    const uint64_t size = (i * 7 % 30 + 1) * 2 * k_mib;
    side_by_side.alloc(low -= size, size);
    by_the_rule.alloc(space.place(size), size);
    const bool few = i < 15;
    EXPECT_EQ(infer_placement(side_by_side.calls, {}).follows_rule(), few) << i;
    EXPECT_TRUE(infer_placement(by_the_rule.calls, {}).follows_rule());
  }
  EXPECT_EQ(infer_placement(by_the_rule.calls, {}).unforeseen, 0u);
}

TEST(Placement, ADriversOwnAllocationIsTakenAlsoWhereSizesDiffer) {
  Calls run;
  run.alloc(k_top - 128 * k_mib, 100 * k_mib);
  run.alloc(k_top - 28 * k_mib + 6 * k_mib, 2 * k_mib);  // 6 MiB of the rest are gone
  const Placement placement = infer_placement(run.calls, {});
  ASSERT_EQ(placement.steps.size(), 1u);
  EXPECT_EQ(placement.steps[0].kind, Kind::take);
  EXPECT_EQ(placement.steps[0].size, 6 * k_mib);
  EXPECT_EQ(placement.steps[0].event, 1u);
  // A first segment of 104 leaves 24, of which the driver takes 6.
  run.calls[0].call.size = 104 * k_mib;
  EXPECT_EQ(placed(placement, run.calls)[1], k_top - 24 * k_mib + 6 * k_mib);
}

// As when libraries were loaded: a range above what is in use becomes free and fills from below.
TEST(Placement, ARangeThatBecameFreeIsFilledFromBelow) {
  Calls run;
  const uint64_t hole = k_top + 64 * k_mib;
  run.alloc(k_top - 32 * k_mib, 32 * k_mib);
  run.alloc(hole, 30 * k_mib);
  run.alloc(hole + 30 * k_mib, 34 * k_mib);
  run.alloc(k_top - 64 * k_mib, 20 * k_mib);
  const Placement placement = infer_placement(run.calls, {});
  EXPECT_EQ(placed(placement, run.calls), recorded(run.calls));
  ASSERT_EQ(placement.steps.size(), 1u);
  EXPECT_EQ(placement.steps[0].kind, Kind::open);
  EXPECT_EQ(placement.steps[0].address, hole);
  // A last segment of 20 did not fit behind the 34.
  EXPECT_EQ(placement.steps[0].size, (30 + 34 + 18) * k_mib);
}

TEST(Placement, GranulesThatBecameFreeAreFilledFromAbove) {
  Calls run;
  run.alloc(k_top - 32 * k_mib, 32 * k_mib);
  run.alloc(k_top + 96 * k_mib, 20 * k_mib);
  run.alloc(k_top + 64 * k_mib, 20 * k_mib);
  run.alloc(k_top + 32 * k_mib, 20 * k_mib);
  run.alloc(k_top - 64 * k_mib, 20 * k_mib);
  const Placement placement = infer_placement(run.calls, {});
  EXPECT_EQ(placed(placement, run.calls), recorded(run.calls));
  ASSERT_EQ(placement.steps.size(), 1u);
  EXPECT_EQ(placement.steps[0].kind, Kind::open_granules);
  EXPECT_EQ(placement.steps[0].size, 96 * k_mib);
}

TEST(Placement, CallsThatContradictThemselvesGiveNoSteps) {
  Calls unknown;
  unknown.alloc(k_top - 96 * k_mib, 20 * k_mib);
  unknown.free(k_top, 20 * k_mib);
  EXPECT_TRUE(infer_placement(unknown.calls, {}).steps.empty());
  Calls overlapping;
  overlapping.alloc(k_top - 64 * k_mib, 40 * k_mib);
  overlapping.alloc(k_top - 40 * k_mib, 60 * k_mib);
  EXPECT_TRUE(infer_placement(overlapping.calls, {}).steps.empty());
  Calls huge;
  huge.alloc(UINT64_MAX - k_mib, 20 * k_mib);
  EXPECT_TRUE(infer_placement(huge.calls, {}).steps.empty());
}

// Whatever happens in the address space, a replay of the steps places as recorded.
TEST(Placement, EveryHistoryIsFollowed) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const auto mib = [&](uint64_t most) { return (random() % most + 1) * 2 * k_mib; };
    AddressSpace space(k_top);
    Calls run;
    std::vector<std::pair<uint64_t, uint64_t>> live;
    for (int i = 0; i < 120; ++i) {
      const uint64_t dice = random() % 100;
      if (dice < 8) space.take(mib(20));
      if (dice >= 8 && dice < 12) space.descend(32 * k_mib * (random() % 5));
      if (dice >= 12 && dice < 15) space.open(k_top + 2 * k_mib * (random() % 4000), mib(100));
      if (dice >= 15 && dice < 20 && !space.rests().empty())
        space.close(space.rests().begin()->first, mib(8));
      if (dice >= 70 && !live.empty()) {
        std::swap(live[random() % live.size()], live.back());
        run.free(live.back().first, live.back().second);
        space.release(live.back().first, live.back().second);
        live.pop_back();
      } else {
        const uint64_t size = mib(80);
        live.emplace_back(space.place(size), size);
        run.alloc(live.back().first, size);
      }
    }
    const Placement placement = infer_placement(run.calls, {});
    ASSERT_EQ(placed(placement, run.calls), recorded(run.calls)) << "seed " << seed;
  }
}

}  // namespace placement_test
}  // namespace cufit::memory
