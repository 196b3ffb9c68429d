// SPDX-License-Identifier: Apache-2.0
#include "fit/cudnn_workspace.h"

#include <gtest/gtest.h>

#include "unit/fit/fit_fixture.h"

namespace cufit::fit {
namespace {

const knowledge::Knowledge& builtin() { return knowledge::Knowledge::builtin(); }

std::vector<uint64_t> conv(uint64_t bits, uint64_t batch, uint64_t channels, uint64_t outputs,
                           uint64_t pixels, uint64_t kernel, bool last = false) {
  const uint64_t padding = kernel / 2;
  return {bits,   batch,  channels, outputs, 1, 0, last ? 1u : 0u, 2, pixels,  pixels, pixels,
          pixels, kernel, kernel,   1,       1, padding, padding,  1, 1};
}

SizeAt bytes_of(const std::vector<uint64_t>& numbers, ConvPass pass, const CudnnAnswer& answer) {
  return cudnn_workspace(conv_shape(numbers).value(), pass, answer, {}, builtin());
}

CudnnAnswer answer(uint64_t bytes, uint32_t tile = 0, uint32_t cluster = 0, bool divides = false) {
  return {bytes, bytes, 0, tile, cluster, 0, divides};
}

// What cuDNN 9.19 answers without a GPU for compute capability 9.0, and what torch 2.11 took on an
// H100.
TEST(CudnnWorkspace, IsThatOfAnH100) {
  struct Row {
    std::vector<uint64_t> numbers;
    ConvPass pass;
    CudnnAnswer answer;
    uint64_t real;
  };
  const Row rows[] = {
      {conv(32, 16, 64, 64, 56, 3), ConvPass::forward, answer(12992528, 2), 12992528},
      {conv(32, 16, 64, 64, 56, 3), ConvPass::data_gradient, answer(25837584, 5), 25837584},
      {conv(32, 16, 64, 64, 56, 3), ConvPass::weight_gradient, answer(26132691, 6, 1, true),
       27902631},
      {conv(16, 16, 64, 64, 56, 3), ConvPass::forward, answer(12918931, 5, 7), 12918800},
      {conv(16, 16, 64, 64, 56, 3), ConvPass::weight_gradient, answer(13213907, 6, 3, true),
       14836391},
      {conv(16, 64, 64, 64, 56, 3), ConvPass::data_gradient, answer(51454099, 2, 7, true),
       51454099},
      {conv(16, 64, 64, 64, 56, 3), ConvPass::weight_gradient, answer(51749075, 6, 3, true),
       53371559},
      // By cuBLAS.
      {conv(32, 64, 128, 512, 28, 1), ConvPass::forward, answer(25952272, 1), 400},
      {conv(32, 64, 128, 512, 28, 1), ConvPass::data_gradient, answer(128450707, 1, 1), 0},
      {conv(32, 64, 128, 512, 28, 1), ConvPass::weight_gradient, answer(128975055, 2, 2, true),
       16777216},
      {conv(16, 64, 512, 2048, 7, 1), ConvPass::forward, answer(16056467, 1, 2), 16056467},
  };
  for (const Row& row : rows) {
    const SizeAt got = bytes_of(row.numbers, row.pass, row.answer);
    EXPECT_NEAR(static_cast<double>(got.point), static_cast<double>(row.real), 1024)
        << row.real << " pass " << static_cast<int>(row.pass);
    EXPECT_GE(got.upper, row.real);
    EXPECT_GE(got.upper, got.point);
  }
}

TEST(CudnnWorkspace, OnlyEnginesThatDivideTheirSumsAskForMore) {
  const std::vector<uint64_t> numbers = conv(16, 16, 64, 64, 56, 3);
  EXPECT_EQ(bytes_of(numbers, ConvPass::weight_gradient, answer(1000, 6, 3, false)).point, 1000u);
  EXPECT_EQ(bytes_of(numbers, ConvPass::weight_gradient, answer(1000, 0, 3, true)).point, 1000u);
  EXPECT_EQ(bytes_of(numbers, ConvPass::weight_gradient, answer(1000, 99, 3, true)).point, 1000u);
  EXPECT_GT(bytes_of(numbers, ConvPass::weight_gradient, answer(1000, 6, 3, true)).point, 1000u);
}

TEST(CudnnWorkspace, OfFewOrUnalignedChannelsIsCudnnsOwn) {
  CudnnAnswer said = answer(68838955);
  const std::vector<uint64_t> few = conv(32, 32, 24, 144, 56, 1);
  EXPECT_LT(bytes_of(few, ConvPass::weight_gradient, said).point, 1000000u);
  said.engine = 40;
  EXPECT_EQ(bytes_of(few, ConvPass::weight_gradient, said).point, 68838955u);  // efficientnet_b0
  EXPECT_EQ(bytes_of(conv(32, 32, 144, 24, 56, 1), ConvPass::weight_gradient, said).point, 442368u);
  // The last layer of a U-Net for 21 classes.
  EXPECT_EQ(bytes_of(conv(32, 4, 32, 21, 320, 1), ConvPass::weight_gradient, answer(87311447)).point,
            87311447u);
}

TEST(CudnnWorkspace, StaysWithinBoundsAtAnySize) {
  const uint64_t most = uint64_t{1} << 48;
  for (const uint64_t batch : {uint64_t{1}, uint64_t{1} << 20, uint64_t{1} << 44})
    for (const ConvPass pass :
         {ConvPass::forward, ConvPass::data_gradient, ConvPass::weight_gradient})
      for (const uint64_t kernel : {1u, 3u}) {
        const SizeAt got =
            bytes_of(conv(16, batch, 1, 1, 1, kernel), pass, answer(most, 6, 3, true));
        EXPECT_LT(got.upper, uint64_t{1} << 56);
      }
}

TraceWriter with_answers() {
  TraceWriter out(8);
  std::vector<uint64_t> key = conv(16, 0, 64, 64, 56, 3);
  out.convolution(90, 0, key, {{32, 400, 0, 0, 0, 0, 1}, {8, 100, 0, 5, 7, 0, 1}});
  out.convolution(86, 0, key, {{8, 77, 0, 0, 0, 0, 1}});
  return out;
}

TEST(CudnnAnswers, AreFoundByCardPassAndShape) {
  CudnnAnswers answers;
  EXPECT_TRUE(answers.empty());
  answers.add(with_answers().read());
  answers.add(with_answers().read());  // the same twice is once
  const auto bytes = [&](ComputeCapability cc, ConvPass pass, uint64_t batch) -> int64_t {
    const auto got = answers.at(cc, pass, conv(16, batch, 64, 64, 56, 3));
    return got ? static_cast<int64_t>(got->bytes) : -1;
  };
  const ComputeCapability hopper{9, 0};
  EXPECT_EQ(bytes(hopper, ConvPass::forward, 8), 100);
  EXPECT_EQ(bytes(hopper, ConvPass::forward, 32), 400);
  EXPECT_EQ(bytes(hopper, ConvPass::forward, 20), 250);  // between the two
  EXPECT_EQ(bytes(hopper, ConvPass::forward, 2), 100);   // below: the first
  EXPECT_EQ(bytes(hopper, ConvPass::forward, 64), 800);  // above: in proportion
  EXPECT_EQ(bytes({8, 6}, ConvPass::forward, 8), 77);
  EXPECT_EQ(bytes({8, 9}, ConvPass::forward, 8), -1);
  EXPECT_EQ(bytes(hopper, ConvPass::weight_gradient, 8), -1);
  EXPECT_FALSE(answers.at(hopper, ConvPass::forward, conv(32, 8, 64, 64, 56, 3)));
  const auto between = answers.at(hopper, ConvPass::forward, conv(16, 20, 64, 64, 56, 3));
  EXPECT_EQ(between->upper, 400u);
}

TEST(Workspaces, OfAConvolutionAreWhatCudnnSaid) {
  TraceWriter out(8);
  const std::vector<uint64_t> numbers = conv(16, 8, 64, 64, 56, 3);
  std::vector<uint64_t> key = numbers;
  key[1] = 0;
  const uint32_t site = out.site("conv", TracePhase::forward);
  const uint32_t made = out.site("convolution", TracePhase::forward);
  for (int i = 0; i < 2; ++i) {
    out.call(site, numbers);
    out.alloc(512, made);
  }
  out.convolution(90, 0, key, {{8, 123456, 9000000, 0, 0, 0, 1}});
  const StepProgram program = aligned({out}).value();
  const auto sizes = sizes_at(program, 8).value();
  LibrarySetup setup;
  const auto plain = workspaces_at(program, sizes, setup, builtin());
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_EQ(plain[0].point, 123456u);
  EXPECT_EQ(plain[1].point, 123456u);
  // torch.backends.cudnn.benchmark: the first time all engines are tried.
  setup.cudnn_benchmark = true;
  const auto tried = workspaces_at(program, sizes, setup, builtin());
  EXPECT_EQ(tried[0].point, 9000000u);
  EXPECT_EQ(tried[1].point, 123456u);
  EXPECT_GE(tried[1].upper, 9000000u);
  // Another card: the rows of the table.
  setup = {};
  setup.cc = {8, 0};
  EXPECT_NE(workspaces_at(program, sizes, setup, builtin())[0].point, 123456u);
}

}  // namespace
}  // namespace cufit::fit
