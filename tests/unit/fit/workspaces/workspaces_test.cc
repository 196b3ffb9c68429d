// SPDX-License-Identifier: Apache-2.0
#include "fit/workspaces/workspaces.h"

#include <gtest/gtest.h>

#include "fit/workspaces/conv_workspace.h"
#include "fit/replayed_steps.h"
#include "unit/fit/fit_fixture.h"

namespace cufit::fit {
namespace workspaces_test {

const knowledge::Knowledge& builtin() { return knowledge::Knowledge::builtin(); }

std::vector<Workspace> of(const TraceWriter& writer, const LibrarySetup& setup = {}) {
  const StepProgram program = aligned({writer}).value();
  const uint64_t batch = program.batches[0];
  return workspaces_at(program, sizes_at(program, batch).value(), setup, builtin());
}

TEST(Workspaces, CublasTakesOneForEachThreadAndLtOneForABias) {
  TraceWriter out(2);
  const uint32_t matmul = out.site("matmul", TracePhase::forward);
  const uint32_t back = out.site("matmul", TracePhase::backward);
  const uint32_t with_bias = out.site("matmul_bias", TracePhase::forward);
  const uint32_t mm = out.site("mm", TracePhase::forward);
  const uint32_t addmm = out.site("addmm", TracePhase::forward);
  const uint32_t mm_back = out.site("mm", TracePhase::backward);
  for (int i = 0; i < 2; ++i) {
    out.call(matmul, {32, 0, 1, 8, 8, 8});  // event 0
    out.alloc(512, mm);
    out.call(with_bias, {32, 0, 1, 8, 8, 8});  // event 2
    out.alloc(512, addmm);
    out.call(back, {32, 0, 1, 8, 8, 8});  // event 4
    out.alloc(512, mm_back);
  }
  const std::vector<Workspace> got = of(out);
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0].point, 33554432u);
  EXPECT_EQ(got[0].event, 1u);  // after its result was made, as recorded runs show
  EXPECT_EQ(got[1].point, 1048576u);
  EXPECT_EQ(got[1].event, 3u);
  EXPECT_EQ(got[2].point, 33554432u);
  EXPECT_EQ(got[2].event, 5u);
  for (const Workspace& one : got) EXPECT_TRUE(one.kept);
  EXPECT_EQ(of(out, {ComputeCapability{8, 6}})[0].point, 8519680u);
  EXPECT_EQ(of(out, {ComputeCapability{7, 5}})[0].point, 8519680u);
  EXPECT_EQ(of(out, {ComputeCapability{12, 0}})[0].upper, 33554432u);
  LibrarySetup config;
  config.cublas_workspace_config = ":16:8";
  EXPECT_EQ(of(out, config)[0].point, 16u * 1024 * 8);
  config.cublas_workspace_config = "many";  // PyTorch warns and takes the default
  EXPECT_EQ(of(out, config)[0].point, 33554432u);
}

// What stands before a recurrent layer that asks for nothing is freed when it was to be.
TEST(Workspaces, OfARecurrentLayerWithoutNumbersLeaveOthersAlone) {
  TraceWriter out(2);
  const uint32_t temporary = out.site("temporary", TracePhase::forward);
  const uint32_t mm = out.site("mm", TracePhase::forward);
  const uint32_t rnn = out.site("rnn", TracePhase::forward);
  out.call(temporary, {4096});
  out.alloc(512, mm);
  out.call(rnn, {1});
  out.alloc(512, rnn);
  out.alloc(512, rnn);
  const std::vector<Workspace> got = of(out);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].point, 4096u);
  EXPECT_EQ(got[0].until, 0u);
}

TEST(Workspaces, ReadsCublasWorkspaceConfig) {
  EXPECT_EQ(parse_cublas_workspace_config(":4096:2:16:8"), 8519680u);
  EXPECT_EQ(parse_cublas_workspace_config(":4096:8"), 33554432u);
  EXPECT_EQ(parse_cublas_workspace_config(":0:0"), 0u);
  for (const char* wrong : {"", ":", ":1", ":1:", "4096:8", ":4096:8:", ":a:1", ":1:2:3",
                            ":99999999999999999999:1", ":1099511627776:1099511627776"})
    EXPECT_FALSE(parse_cublas_workspace_config(wrong)) << wrong;
}

// Sizes that an H200 showed: trace-resnet.pkl.gz, batch 48, fp32.
TEST(Workspaces, OfConvolutionsAreWhatWasMeasured) {
  struct Row {
    ConvPass pass;
    std::vector<uint64_t> numbers;
    uint64_t measured;
    double within;  // of the measured size
  };
  using N = std::vector<uint64_t>;
  const auto conv = [](uint64_t c, uint64_t k, uint64_t in, uint64_t out, uint64_t kernel,
                       uint64_t stride) {
    return N{32,  48,  c,      k,      1,      0,      0, 2, in, in,
             out, out, kernel, kernel, stride, stride, 0, 0, 1,  1};
  };
  const Row rows[] = {
      {ConvPass::forward, conv(3, 64, 224, 112, 7, 2), 183079696, 1e-5},
      {ConvPass::forward, conv(64, 64, 56, 56, 3, 1), 77217939, 1e-5},
      {ConvPass::forward, conv(64, 256, 56, 56, 1, 1), 400, 0},
      {ConvPass::forward, conv(512, 2048, 7, 7, 1, 1), 24084627, 0},
      {ConvPass::forward, conv(128, 128, 56, 28, 3, 2), 104268179, 0.08},
      {ConvPass::forward, conv(512, 512, 7, 7, 3, 1), 19071123, 1e-5},
      {ConvPass::data_gradient, conv(64, 64, 56, 56, 3, 1), 77217939, 1e-5},
      {ConvPass::weight_gradient, conv(64, 64, 56, 56, 3, 1), 79282855, 0.01},
      {ConvPass::weight_gradient, conv(128, 128, 28, 28, 3, 1), 47383207, 0.01},
      {ConvPass::weight_gradient, conv(512, 128, 28, 28, 1, 1), 12582912, 1e-4},
      {ConvPass::weight_gradient, conv(256, 64, 56, 56, 1, 1), 3146128, 1e-4},
      {ConvPass::weight_gradient, conv(1024, 512, 14, 14, 1, 1), 66191919, 1e-4},
      {ConvPass::weight_gradient, conv(3, 64, 224, 112, 7, 2), 198747280, 0.09},
  };
  for (const Row& row : rows) {
    const SizeAt got = conv_workspace(conv_shape(row.numbers).value(), row.pass, {}, builtin());
    const auto measured = static_cast<double>(row.measured);
    EXPECT_NEAR(static_cast<double>(got.point), measured, measured * row.within + 0.5);
    EXPECT_GE(got.upper, row.measured);
  }
}

TEST(Workspaces, OfConvolutionsThatNobodyMeasuredHaveABoundOnly) {
  std::vector<uint64_t> numbers = {32, 8,  64, 64, 1, 0, 0, 2, 28, 28,
                                   28, 28, 3,  3,  1, 1, 1, 1, 1,  1};
  const auto at = [&](ComputeCapability cc) {
    return conv_workspace(conv_shape(numbers).value(), ConvPass::forward, {cc}, builtin());
  };
  EXPECT_GT(at({8, 0}).point, 0u);
  EXPECT_EQ(at({7, 5}).point, 0u);
  EXPECT_GT(at({7, 5}).upper, 0u);
  numbers[6] = 1;  // channels_last
  EXPECT_EQ(at({8, 0}).point, 0u);
  numbers[6] = 0;
  numbers[4] = 64;  // depthwise
  EXPECT_EQ(at({8, 0}).point, 0u);
  numbers[1] = 0;  // an empty batch
  EXPECT_EQ(at({8, 0}).upper, 0u);
}

std::vector<uint64_t> points(const std::vector<Workspace>& workspaces) {
  std::vector<uint64_t> out;
  for (const Workspace& one : workspaces) out.push_back(one.point);
  return out;
}

// Three batches of a validation are in the trace.
TEST(Workspaces, OfBatchesThatWereNotTracedAreWhatEachLeaves) {
  TraceWriter out(8);
  out.alloc(512, out.site("empty", TracePhase::setup));
  const uint32_t kept = out.site("kept_of_each_batch", TracePhase::validation);
  const uint32_t joined = out.site("joined_batches", TracePhase::validation);
  out.call(kept, {44, 8, 1000});  // six batches, the last of four
  out.call(joined, {44, 8, 1000, 0});
  out.call(joined, {44, 8, 1000, 1});
  const std::vector<Workspace> got = of(out);
  EXPECT_EQ(points(got), (std::vector<uint64_t>{1000, 1000, 500, 3000, 4000, 5000, 5500}));
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(got[i].by_program);
    EXPECT_EQ(got[i].kept, i < 3);
    EXPECT_EQ(got[i].replaces, i >= 3);
  }
  // Joined anew, the last but one is there beside the last.
  const StepProgram program = aligned({out}).value();
  const std::vector<SizeAt> sizes = sizes_at(program, 8).value();
  const ReplayedSteps run = replay_steps({program, sizes, got}, {}, Estimate::point, {});
  EXPECT_EQ(run.peak_by_program, 2u * 1024 + 512 + 5120 + 5632);
}

TEST(Workspaces, OfBatchesAreThereUntilTheTraceSaysThatTheyAreGone) {
  const auto peak = [](bool gone) {
    TraceWriter out(8);
    out.alloc(512, out.site("empty", TracePhase::setup));
    out.call(out.site("kept_of_each_batch", TracePhase::validation), {44, 8, 2 * k_mib});
    out.call(out.site("joined_batches", TracePhase::validation), {44, 8, k_mib, 1});
    if (gone) out.call(out.site("collected_gone", TracePhase::validation), {});
    out.mark(TraceMark::step_begins);
    out.alloc(8 * k_mib, out.site("empty", TracePhase::forward));
    const StepProgram program = aligned({out}).value();
    const std::vector<SizeAt> sizes = sizes_at(program, 8).value();
    return replay_steps({program, sizes, of(out)}, {}, Estimate::point, {}).peak_allocated;
  };
  // 2 + 2 + 1 of the last three batches, and 5.5 of all six.
  EXPECT_EQ(peak(false), 512 + 8 * k_mib + 5 * k_mib + 11 * k_mib / 2);
  EXPECT_EQ(peak(true), 512 + 5 * k_mib + 11 * k_mib / 2);
}

TEST(Workspaces, OfBatchesNeedNumbersThatCanBe) {
  const auto held = [](std::initializer_list<uint64_t> numbers) {
    TraceWriter out(8);
    out.alloc(512, out.site("empty", TracePhase::setup));
    out.call(out.site("joined_batches", TracePhase::validation), numbers);
    return of(out);
  };
  EXPECT_TRUE(held({0, 8, 1000, 1}).empty());
  EXPECT_TRUE(held({44, 0, 1000, 1}).empty());
  EXPECT_TRUE(held({44, 8, 0, 1}).empty());
  EXPECT_TRUE(held({1, 1u << 30, 1, 1}).empty());
  EXPECT_TRUE(held({44, 8}).empty());
  // A batch that lacks nearly all of its samples leaves nothing, whatever it rounds to.
  EXPECT_LE(held({1, uint64_t{1} << 56, (uint64_t{1} << 53) + 3, 1}).size(), 1u);
  EXPECT_TRUE(held({1, uint64_t{1} << 56, (uint64_t{1} << 53) + 3}).empty());
  EXPECT_EQ(held({8, 8, 1000, 1}).size(), 1u);
  // A million batches are some thousand blocks.
  EXPECT_LE(held({8u << 20, 8, 1000, 0}).size(), 4096u);
}

TEST(Workspaces, IgnoreNumbersThatAreNoConvolution) {
  const std::vector<uint64_t> good = {32, 8,  64, 64, 1, 0, 0, 2, 28, 28,
                                      28, 28, 3,  3,  1, 1, 1, 1, 1,  1};
  EXPECT_TRUE(conv_shape(good));
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(conv_shape(std::span(good).first(size))) << size;
  for (const size_t at : {1u, 2u, 3u, 7u, 8u, 10u, 12u}) {
    std::vector<uint64_t> wrong = good;
    wrong[at] = uint64_t{1} << 62;
    EXPECT_FALSE(conv_shape(wrong)) << at;
  }
  std::vector<uint64_t> no_groups = good;
  no_groups[4] = 0;
  EXPECT_FALSE(conv_shape(no_groups));
}

TEST(Workspaces, OfAGradientFollowTheResultTheyBelongTo) {
  const std::vector<uint64_t> shape = {32, 8,  64, 64, 1, 0, 0, 2, 28, 28,
                                       28, 28, 3,  3,  1, 1, 1, 1, 1,  1};
  TraceWriter out(8);
  const uint32_t data = out.site("conv_dgrad", TracePhase::backward);
  const uint32_t weights = out.site("conv_wgrad", TracePhase::backward);
  const uint32_t made = out.site("convolution_backward", TracePhase::backward);
  out.call(data, shape);
  out.call(weights, shape);
  out.alloc(1024, made);
  out.alloc(512, made);
  out.call(weights, shape);
  const std::vector<Workspace> got = of(out);
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0].event, 2u);
  EXPECT_EQ(got[1].event, 3u);
  EXPECT_EQ(got[2].event, 4u);
  EXPECT_GT(got[1].point, got[0].point);  // that of the weights is the larger one
  for (const Workspace& one : got) EXPECT_FALSE(one.kept);
}

}  // namespace workspaces_test
}  // namespace cufit::fit
