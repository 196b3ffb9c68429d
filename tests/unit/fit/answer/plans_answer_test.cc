// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/plans_answer.h"

#include <gtest/gtest.h>

#include "unit/fit/fit_fixture.h"

namespace cufit::fit {
namespace plans_answer_test {

const knowledge::Knowledge& tables() { return knowledge::Knowledge::builtin(); }

// A trace made for plans, with a step over two micro-batches.
formats::TraceEvents planned(uint64_t batch, int more = 0) {
  TraceWriter out(batch);
  const Sites sites = write_sites(out);
  const uint32_t moved = out.site("moved", TracePhase::forward);
  out.category(out.alloc(64 * k_mib, sites.weight), StorageCategory::parameter);
  for (int i = 0; i < more; ++i) out.alloc(k_mib, sites.loss);
  for (int step = 0; step < 3; ++step) write_step(out, sites, batch, 0, step == 0);
  out.fact("micro_batches", "1");
  out.mark(TraceMark::micro_batch);
  out.mark(TraceMark::step_begins);
  out.call(moved, {100 * batch * k_mib, 1});
  const uint32_t kept = out.alloc(4 * batch * k_mib, sites.act);
  out.free(kept);
  out.mark(TraceMark::step_ends);
  out.fact("accumulated", "1");
  out.end();
  return out.read();
}

PlansAsked asked(uint64_t batch = 8, bool extrapolates = true) {
  PlansAsked out;
  out.batch = batch;
  out.extrapolates = extrapolates;
  out.traced_card = traced_card({}, tables());
  for (const uint64_t mib : {4096, 0, 8192}) {
    Card card;
    card.name = std::to_string(mib);
    card.asked = mib != 8192;
    card.usable = card.total = mib * k_mib;
    out.cards.push_back(card);
  }
  return out;
}

Traces traces() {
  Traces out;
  out.whole = {planned(8), planned(16)};
  out.variants.push_back({{"bf16"}, {planned(8), planned(16)}});
  return out;
}

std::vector<std::string> ids(const Traces& traces) {
  std::vector<std::string> out;
  for (const Warning& warning : traces.warnings) out.push_back(warning.id);
  return out;
}

TEST(PlansAnswer, HasTheProgramAsItIsFirst) {
  Traces given = traces();
  const PlansAnswer got = plans_answer(given, asked(), tables());
  ASSERT_EQ(got.programs.size(), 2u);
  EXPECT_TRUE(got.programs[0].switches.empty());
  EXPECT_EQ(got.programs[1].switches, std::vector<std::string>{"bf16"});
  EXPECT_TRUE(got.programs[0].steps.extrapolates());
  EXPECT_EQ(got.cards, std::vector<std::string>{"4096"});  // asked for, and with memory
  EXPECT_EQ(got.usable, std::vector<uint64_t>{4096 * k_mib});
}

TEST(PlansAnswer, LeavesOutWhatTheCardHasNoUnitsFor) {
  Traces given = traces();
  PlansAsked turing = asked();
  turing.traced_card.cc = "7.5";
  EXPECT_EQ(plans_answer(given, turing, tables()).programs.size(), 1u);
}

TEST(PlansAnswer, KnowsOneBatchSizeWhereTheProgramDoes) {
  Traces given = traces();
  const PlansAnswer got = plans_answer(given, asked(16, false), tables());
  ASSERT_FALSE(got.programs.empty());
  for (const PlanProgram& program : got.programs)
    EXPECT_EQ(program.steps.batches, std::vector<uint64_t>{16});
}

TEST(PlansAnswer, OfAVariantLeaveOutABatchOfOneThatGoesItsOwnWay) {
  Traces given = traces();
  given.whole = {planned(1, 1), planned(2), planned(4)};
  const PlansAnswer got = plans_answer(given, asked(2), tables());
  ASSERT_FALSE(got.programs.empty());
  EXPECT_EQ(got.programs[0].steps.batches, (std::vector<uint64_t>{2, 4}));
}

TEST(PlansAnswer, SaysWhyThereAreNone) {
  Traces given = traces();
  EXPECT_TRUE(plans_answer(given, asked(0), tables()).programs.empty());
  EXPECT_EQ(ids(given), std::vector<std::string>{"plan_no_batch"});
  Traces untold;
  EXPECT_TRUE(plans_answer(untold, asked(), tables()).programs.empty());
  EXPECT_EQ(ids(untold), std::vector<std::string>{"plan_untold"});
  Traces broken = traces();
  broken.variants.push_back({{"fused"}, {TraceWriter(8).read()}});
  EXPECT_EQ(plans_answer(broken, asked(), tables()).programs.size(), 2u);
  ASSERT_FALSE(broken.warnings.empty());
  EXPECT_EQ(broken.warnings[0].id, "plan_failed");
  EXPECT_EQ(broken.warnings[0].args.at("switches"), "fused");
}

}  // namespace plans_answer_test
}  // namespace cufit::fit
