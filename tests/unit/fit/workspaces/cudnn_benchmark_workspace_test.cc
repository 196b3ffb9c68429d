// SPDX-License-Identifier: Apache-2.0
// Numbers from NVIDIA H200s with torch 2.11 and cuDNN 9.19: the greatest block that PyTorch asked
// for while torch.backends.cudnn.benchmark tried a convolution in fp32.
#include "fit/workspaces/cudnn_benchmark_workspace.h"

#include <gtest/gtest.h>

#include <vector>

namespace cufit::fit {
namespace cudnn_benchmark_workspace_test {

std::vector<uint64_t> conv(uint64_t batch, uint64_t in, uint64_t out, uint64_t side,
                           uint64_t kernel, uint64_t groups = 1) {
  return {32,   batch, in,     out,    groups, 0, 0,          2,          side, side,
          side, side,  kernel, kernel, 1,      1, kernel / 2, kernel / 2, 1,    1};
}

SizeAt of(const std::vector<uint64_t>& numbers) {
  return tried_workspace(numbers, ConvPass::forward);
}

TEST(TriedWorkspace, IsWhatWasAskedFor) {
  const struct {
    ConvPass pass;
    std::vector<uint64_t> numbers;
    uint64_t measured;
  } rows[] = {{ConvPass::forward, conv(64, 1024, 2048, 7, 1), 4991221760},
              {ConvPass::forward, conv(64, 512, 1024, 14, 1), 1285554176},
              {ConvPass::forward, conv(4, 256, 640, 80, 1), 21947351040},
              {ConvPass::forward, conv(2, 320, 192, 160, 3), 32804290560},
              {ConvPass::forward, conv(12, 512, 512, 40, 3, 8), 1394737280},
              {ConvPass::forward, conv(64, 128, 256, 56, 1), 1384251392},
              {ConvPass::forward, conv(16, 192, 64, 128, 3), 8116420608},
              {ConvPass::forward, conv(1, 24, 24, 80, 7), 79984896},
              {ConvPass::forward, conv(32, 512, 512, 20, 7), 2475687936},
              {ConvPass::data_gradient, conv(32, 256, 1024, 24, 3), 1319108608},
              {ConvPass::data_gradient, conv(16, 192, 128, 48, 3), 151519232},
              {ConvPass::data_gradient, conv(24, 128, 128, 4, 3), 98041856},
              {ConvPass::data_gradient, conv(1, 128, 256, 80, 3), 145948672},
              {ConvPass::data_gradient, conv(256, 32, 64, 8, 7), 115867648},
              {ConvPass::weight_gradient, conv(1, 512, 16, 32, 7), 276889600},
              {ConvPass::weight_gradient, conv(32, 24, 64, 192, 5), 1789919232},
              {ConvPass::weight_gradient, conv(48, 64, 3, 160, 1), 1714028544},
              {ConvPass::weight_gradient, conv(16, 160, 32, 80, 3), 694681600},
              {ConvPass::weight_gradient, conv(64, 128, 32, 128, 3), 5544869888}};
  for (const auto& row : rows) {
    const SizeAt out = tried_workspace(row.numbers, row.pass);
    // Up to what engines keep beside it.
    EXPECT_NEAR(static_cast<double>(out.point), static_cast<double>(row.measured), 1024);
    EXPECT_GE(out.upper, row.measured);
  }
  EXPECT_EQ(tried_workspace(conv(64, 128, 256, 56, 1), ConvPass::data_gradient).upper, 0u);
}

// A program on an H200 with torch.backends.cudnn.deterministic.
TEST(TriedWorkspace, IsWhatGradientsOfThousandsOfPicturesTake) {
  CudnnAnswer named;
  named.engine = 34;
  const struct {
    std::vector<uint64_t> numbers;
    uint64_t measured;
  } rows[] = {{conv(4096, 32, 32, 11, 3), 667418624},
              {conv(4096, 32, 32, 21, 3), 2512912384},
              {conv(4096, 16, 32, 42, 3), 7568621568}};
  for (const auto& row : rows) {
    EXPECT_TRUE(takes_over(row.numbers, ConvPass::weight_gradient, named));
    const SizeAt out = tried_workspace(row.numbers, ConvPass::weight_gradient);
    EXPECT_NEAR(static_cast<double>(out.point), static_cast<double>(row.measured), 1024);
  }
  EXPECT_FALSE(takes_over(rows[0].numbers, ConvPass::forward, named));
  EXPECT_FALSE(takes_over(conv(183, 32, 32, 21, 3), ConvPass::weight_gradient, named));
  EXPECT_FALSE(takes_over(conv(4096, 32, 32, 300, 3), ConvPass::weight_gradient, named));
  named.engine = 50;
  EXPECT_FALSE(takes_over(rows[0].numbers, ConvPass::weight_gradient, named));
}

TEST(TriedWorkspace, IsChosenForKernelsAsLargeAsPictures) {
  std::vector<uint64_t> numbers = conv(128, 1, 128, 128, 128);
  numbers[16] = numbers[17] = 1;
  EXPECT_TRUE(has_no_other_engine(numbers));
  EXPECT_EQ(of(numbers).point, 8665432064u);
  numbers = conv(64, 1, 64, 100, 96);
  numbers[16] = numbers[17] = 0;
  EXPECT_TRUE(has_no_other_engine(numbers));
  EXPECT_EQ(of(numbers).point, 547618816u);
  EXPECT_FALSE(has_no_other_engine(conv(128, 256, 256, 64, 3)));
  numbers = conv(32, 1, 32, 112, 112);
  numbers[16] = numbers[17] = 1;
  EXPECT_FALSE(has_no_other_engine(numbers));
  EXPECT_FALSE(has_no_other_engine({}));
}

TEST(TriedWorkspace, TakesNoOther) {
  EXPECT_EQ(of(conv(64, 64, 64, 300, 3)).upper, 0u);    // larger than a transform
  EXPECT_EQ(of(conv(8, 64, 64, 56, 3, 64)).upper, 0u);  // one channel per group
  std::vector<uint64_t> numbers = conv(8, 64, 64, 56, 3);
  numbers[14] = 2;  // stride
  EXPECT_EQ(of(numbers).upper, 0u);
  numbers = conv(8, 64, 64, 56, 3);
  numbers[0] = 16;  // bits
  EXPECT_EQ(of(numbers).upper, 0u);
  EXPECT_EQ(of({}).upper, 0u);
  EXPECT_LE(of(conv(1u << 20, 1u << 16, 1u << 16, 1, 1)).upper, uint64_t{1} << 48);
}

}  // namespace cudnn_benchmark_workspace_test
}  // namespace cufit::fit
