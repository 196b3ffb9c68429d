// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/traced_programs.h"

#include <gtest/gtest.h>

#include "fit/answer/traces.h"
#include "unit/fit/fit_fixture.h"

namespace cufit::fit {
namespace traced_programs_test {

// As small_program(), but with `more` storages that another batch size does not make.
formats::TraceEvents trace(uint64_t batch, int more = 0, uint64_t sized_as = 0) {
  TraceWriter out(batch);
  const Sites sites = write_sites(out);
  for (int i = 0; i < more; ++i) out.alloc(k_mib, sites.loss);
  for (int i = 0; i < 3; ++i) write_step(out, sites, sized_as == 0 ? batch : sized_as, 0, i == 0);
  out.end();
  return out.read();
}

Result<TracedPrograms> programs(std::vector<formats::TraceEvents> traces,
                                std::vector<Warning>& warnings) {
  return traced_programs(std::move(traces), std::nullopt, warnings);
}

TEST(TracedPrograms, AnswerForAnyBatchSize) {
  std::vector<Warning> warnings;
  const Result<TracedPrograms> got = programs({trace(4), trace(8)}, warnings);
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->many.extrapolates());
  EXPECT_FALSE(got->one);
  EXPECT_TRUE(warnings.empty());
}

TEST(TracedPrograms, LetABatchOfOneGoItsOwnWay) {
  std::vector<Warning> warnings;
  const Result<TracedPrograms> got = programs({trace(1, 1), trace(2), trace(4)}, warnings);
  ASSERT_TRUE(got);
  ASSERT_TRUE(got->one);
  EXPECT_TRUE(got->many.extrapolates());
  EXPECT_EQ(&got->at(1), &*got->one);
  EXPECT_EQ(&got->at(2), &got->many);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].id, "differs_at_one");
}

TEST(TracedPrograms, ThatPartElsewhereAnswerForTheirOwnSizes) {
  std::vector<Warning> warnings;
  const Result<TracedPrograms> got = programs({trace(4, 1), trace(8)}, warnings);
  ASSERT_TRUE(got);
  EXPECT_FALSE(got->many.extrapolates());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].id, "differs");
  EXPECT_EQ(warnings[0].source.substr(0, 9), "train.py:");
}

TEST(TracedPrograms, OfSizesThatDoNotFollowTheBatchAreOne) {
  std::vector<Warning> warnings;
  const Result<TracedPrograms> got = programs({trace(4, 0, 4), trace(8, 0, 4)}, warnings);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->many.batches, std::vector<uint64_t>{4});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].id, "batch_without_effect");
}

TEST(Traces, AreOfVariantsWhereTheySaySo) {
  Traces traces;
  for (const char* variant : {"", "bf16", "bf16,fused", "bf16"}) {
    TraceWriter out(8);
    out.fact("variant", variant);
    out.fact("batch_found", "8");
    out.end();
    add_trace(traces, out.read());
  }
  EXPECT_EQ(traces.plain.size(), 1u);
  EXPECT_EQ(traces.own_batch, 8u);
  ASSERT_EQ(traces.variants.size(), 2u);
  EXPECT_EQ(traces.variants[0].switches, std::vector<std::string>{"bf16"});
  EXPECT_EQ(traces.variants[0].traces.size(), 2u);
  EXPECT_EQ(traces.variants[1].switches, (std::vector<std::string>{"bf16", "fused"}));
}

TEST(Traces, KeepWhatPlansNeedApart) {
  TraceWriter out(8);
  const Sites sites = write_sites(out);
  write_step(out, sites, 8, 0, true);
  out.mark(TraceMark::micro_batch);
  write_step(out, sites, 8, 0, false);
  out.end();
  for (const bool plans : {false, true}) {
    Traces traces;
    traces.plain.push_back(out.read());
    const size_t all = traces.plain[0].events.size();
    keep_micro_batches_apart(traces, plans);
    EXPECT_LT(traces.plain[0].events.size(), all);
    ASSERT_EQ(traces.whole.size(), plans ? 1u : 0u);
    if (!plans) continue;
    EXPECT_EQ(traces.whole[0].events.size(), all);
  }
}

TEST(Traces, OfABatchOfOneNeedTwoMore) {
  EXPECT_EQ(other_batches(8), std::vector<uint64_t>{16});
  EXPECT_EQ(other_batches(1), (std::vector<uint64_t>{2, 4}));
}

}  // namespace traced_programs_test
}  // namespace cufit::fit
