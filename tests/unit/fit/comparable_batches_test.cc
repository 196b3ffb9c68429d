// SPDX-License-Identifier: Apache-2.0
// Traces whose steps were of other batches, laid over each other.
#include <gtest/gtest.h>

#include "fit/step_program.h"
#include "unit/fit/fit_fixture.h"

namespace cufit::fit {
namespace comparable_batches_test {
struct Bucketed {
  uint64_t samples, height, width;
};

// Steps of pictures: what each makes follows their number and sizes. One more stands behind
// validation.
formats::TraceEvents of_pictures(uint64_t batch, const std::vector<Bucketed>& all, size_t steps,
                                 const Bucketed& behind) {
  TraceWriter out(batch);
  const uint32_t weight = out.site("empty", TracePhase::setup, "", "train.py:1");
  const uint32_t input = out.site("to", TracePhase::other, "", "train.py:2");
  const uint32_t early = out.site("to", TracePhase::setup, "", "train.py:2");
  const uint32_t conv = out.site("mm", TracePhase::forward, "", "train.py:3");
  const uint32_t convolution = out.site("conv", TracePhase::forward, "", "train.py:3");
  const uint32_t time = out.site("embed", TracePhase::forward, "", "train.py:4");
  const uint32_t state = out.site("zeros_like", TracePhase::optimizer, "", "train.py:5");
  const uint32_t given = out.site("batch_given", TracePhase::other, "", "");
  const uint32_t to_come = out.site("batch_to_come", TracePhase::other, "", "");
  out.alloc(64 * k_mib, weight);
  const auto step = [&](const Bucketed& of, bool first) {
    const auto& [samples, height, width] = of;
    if (!first) out.mark(TraceMark::step_begins);
    const uint32_t a = out.alloc(4 * samples * 4 * height * width, first ? early : input);
    if (first) out.mark(TraceMark::step_begins);  // by the first module
    const uint32_t b = out.alloc(4 * samples * 320 * height * width, conv);
    const uint32_t c = out.alloc(4 * samples * 1280, time);
    if (first) out.alloc(64 * k_mib, state);
    out.call(conv, {32, 0, samples, height * width, 64, 64});
    out.call(convolution, {32,     samples, 4, 64, 1, 0, 0, 2, height, width,
                           height, width,   3, 3,  1, 1, 1, 1, 1,      1});
    for (const uint32_t storage : {a, b, c}) out.free(storage);
    out.mark(TraceMark::step_ends);
  };
  for (size_t i = 0; i < steps; ++i) step(all[i], i == 0);
  for (size_t i = 0; i < all.size(); ++i)
    out.call(i < steps ? given : to_come,
             {all[i].samples, 4, all[i].height, all[i].width, all[i].samples});
  out.mark(TraceMark::after_steps);
  out.free(out.alloc(k_mib, conv));
  step(behind, false);
  out.end();
  return out.read();
}

// Buckets of four shapes in another order at either batch size, whose last batch is smaller.
std::vector<Bucketed> buckets(uint64_t batch, size_t count, size_t shift) {
  constexpr uint64_t k_shapes[][2] = {{104, 152}, {128, 128}, {152, 104}, {96, 168}};
  std::vector<Bucketed> out;
  for (size_t i = 0; i < count; ++i) {
    const auto& shape = k_shapes[(i * 7 + shift) % 4];
    out.push_back({(i + shift) % 3 == 0 ? 4 : batch, shape[0], shape[1]});
  }
  return out;
}

TEST(ComparableBatches, AreThoseOfTheFirstTraceInEveryTrace) {
  const formats::TraceEvents six = of_pictures(6, buckets(6, 30, 1), 12, {6, 96, 168});
  const formats::TraceEvents twelve = of_pictures(12, buckets(12, 20, 0), 12, {4, 128, 128});
  const formats::TraceEvents both[] = {six, twelve};
  const StepProgram program = align(both).value();
  ASSERT_TRUE(program.differences.empty());
  ASSERT_TRUE(program.extrapolates());
  EXPECT_TRUE(sizes_at(program, 1000));  // no picture becomes smaller than nothing
  uint64_t before = 0;
  for (const uint64_t batch : {1, 2, 3, 5, 6, 8, 12, 20, 24}) {
    std::vector<Bucketed> full = buckets(6, 30, 1);
    for (Bucketed& one : full) one.samples = batch;
    if (batch == 6) full = buckets(6, 30, 1);  // the trace as it is
    const formats::TraceEvents real = of_pictures(batch, full, 30, {batch, 128, 128});
    const uint64_t should = predict(align({&real, 1}).value(), batch, {}).value().peak_allocated;
    const uint64_t is = predict(program, batch, {}).value().peak_allocated;
    EXPECT_NEAR(static_cast<double>(is), static_cast<double>(should), 0.001 * should) << batch;
    EXPECT_GE(is, before) << batch;
    before = is;
  }
}

TEST(ComparableBatches, OfOneSizeStayAsTheyAre) {
  const std::vector<Bucketed> same(12, {6, 128, 128});
  const std::vector<Bucketed> twice(12, {12, 128, 128});
  const formats::TraceEvents both[] = {of_pictures(6, same, 12, same[0]),
                                       of_pictures(12, twice, 12, twice[0])};
  const StepProgram program = align(both).value();
  EXPECT_TRUE(program.whole.empty());
  EXPECT_EQ(program.later_steps, 0u);
}

struct Graph {
  uint64_t nodes, edges;
};

// Graphs, of which a batch holds the nodes and the edges of all; one more size is the number of
// graphs and one.
formats::TraceEvents of_graphs(uint64_t batch, const std::vector<Graph>& all, size_t steps) {
  TraceWriter out(batch);
  const uint32_t weight = out.site("empty", TracePhase::setup, "", "train.py:1");
  const uint32_t input = out.site("to", TracePhase::other, "", "train.py:2");
  const uint32_t message = out.site("mm", TracePhase::forward, "", "train.py:3");
  const uint32_t pooled = out.site("sum", TracePhase::forward, "", "train.py:4");
  const uint32_t given = out.site("batch_given", TracePhase::other, "", "");
  const uint32_t to_come = out.site("batch_to_come", TracePhase::other, "", "");
  out.alloc(64 * k_mib, weight);
  for (size_t i = 0; i < steps; ++i) {
    out.mark(TraceMark::step_begins);
    const uint32_t a = out.alloc(4 * 64 * all[i].nodes, input);
    const uint32_t b = out.alloc(4 * 256 * (all[i].nodes + 2 * all[i].edges), message);
    const uint32_t c = out.alloc(4 * 1024 * (batch + 1), pooled);
    for (const uint32_t storage : {a, b, c}) out.free(storage);
    out.mark(TraceMark::step_ends);
  }
  for (size_t i = 0; i < all.size(); ++i)
    out.call(i < steps ? given : to_come, {all[i].nodes, 64, 2, all[i].edges, batch + 1, batch});
  out.end();
  return out.read();
}

std::vector<Graph> graphs(uint64_t batch, size_t count, uint64_t seed) {
  std::vector<Graph> out;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t a = (i * 37 + seed * 11) % 23, b = (i * 53 + seed * 7) % 31;
    out.push_back({batch * (40 + a), batch * (300 + 4 * b)});
  }
  return out;
}

Result<StepProgram> align_one(const formats::TraceEvents& trace) { return align({&trace, 1}); }

uint64_t allocated(const StepProgram& program, uint64_t batch) {
  return predict(program, batch, {}).value().peak_allocated;
}

TEST(ComparableBatches, SumsOverSamplesGrowWithTheirNumber) {
  const std::vector<Graph> first = graphs(8, 40, 1);
  const formats::TraceEvents both[] = {of_graphs(8, first, 12), of_graphs(16, graphs(16, 20, 2), 12)};
  const StepProgram program = align(both).value();
  ASSERT_TRUE(program.extrapolates());
  for (const uint64_t batch : {4, 16, 24, 64}) {
    std::vector<Graph> real = first;
    for (Graph& one : real) one = {one.nodes * batch / 8, one.edges * batch / 8};
    const double should = double(allocated(align_one(of_graphs(batch, real, 40)).value(), batch));
    EXPECT_NEAR(double(allocated(program, batch)), should, 0.001 * should) << batch;
  }
}

// A trace at twice the batch size comes to the end of its data in half the steps.
TEST(ComparableBatches, OfTheOwnSizeAllThatComeAreSteps) {
  std::vector<Graph> first = graphs(8, 40, 1);
  first[38] = {8 * 90, 8 * 700};  // the largest comes late
  const formats::TraceEvents both[] = {of_graphs(8, first, 12), of_graphs(16, graphs(16, 20, 2), 12)};
  const StepProgram program = align(both).value();
  ASSERT_NE(program.at(8), nullptr);
  EXPECT_EQ(program.at(8)->later_steps, 28u);
  const uint64_t should = allocated(align_one(of_graphs(8, first, 40)).value(), 8);
  EXPECT_EQ(allocated(program, 8), should);
}

// Batches of so many tokens hold fewer samples the longer they are: no law for another number.
TEST(ComparableBatches, SizesThatFollowTheirNumberInNoMeasureAreLeft) {
  std::vector<Graph> other = graphs(16, 20, 2);
  for (Graph& one : other) one.edges = one.edges * 3 / 4;
  const formats::TraceEvents both[] = {of_graphs(8, graphs(8, 40, 1), 12), of_graphs(16, other, 12)};
  const StepProgram program = align(both).value();
  EXPECT_EQ(program.at(8)->later_steps, 28u);
  const StepProgram own = align({both, 1}).value();
  EXPECT_EQ(allocated(program, 8), allocated(own, 8));
}

// Between the traces on a line, below them as of the smallest, beyond them on.
TEST(LeftOut, FollowsTheBatchSize) {
  const formats::TraceEvents both[] = {of_graphs(8, std::vector<Graph>(6, {80, 800}), 6),
                                       of_graphs(16, std::vector<Graph>(6, {160, 1600}), 6)};
  const StepProgram plain = align(both).value();
  StepProgram program = plain;
  program.left_out.more_reserved = {{8, 1000 * k_mib}, {16, 3000 * k_mib}};
  for (const auto& [batch, more] : {std::pair<uint64_t, uint64_t>{4, 1000}, {8, 1000}, {12, 2000},
                                    {16, 3000}, {32, 7000}})
    EXPECT_EQ(predict(program, batch, {}).value().peak_reserved_upper,
              predict(plain, batch, {}).value().peak_reserved_upper + more * k_mib)
        << batch;
}

}  // namespace comparable_batches_test
}  // namespace cufit::fit
