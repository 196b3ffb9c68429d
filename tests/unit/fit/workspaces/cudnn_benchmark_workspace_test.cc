// SPDX-License-Identifier: Apache-2.0
// Numbers from an NVIDIA H200 with torch 2.11 and cuDNN 9.19: the greatest block that PyTorch asked
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

TEST(TriedWorkspace, IsNearWhatWasAskedFor) {
  const struct {
    std::vector<uint64_t> numbers;
    double measured;
  } rows[] = {{conv(64, 1024, 2048, 7, 1), 4991221760},   {conv(64, 512, 1024, 14, 1), 1285554176},
              {conv(4, 256, 640, 80, 1), 21947351040},    {conv(2, 320, 192, 160, 3), 32804290560},
              {conv(12, 512, 512, 40, 3, 8), 1394737280}, {conv(64, 128, 256, 56, 1), 1384251392},
              {conv(64, 1024, 256, 14, 1), 756023296}};
  for (const auto& row : rows) {
    const SizeAt out = tried_workspace(row.numbers, ConvPass::forward);
    EXPECT_GE(static_cast<double>(out.point), 0.91 * row.measured);
    EXPECT_LE(static_cast<double>(out.point), 1.27 * row.measured);
    EXPECT_GE(static_cast<double>(out.upper), row.measured);
  }
}

TEST(TriedWorkspace, TakesTwiceForGradientsOfSmallPictures) {
  EXPECT_EQ(tried_workspace(conv(64, 512, 512, 7, 3), ConvPass::weight_gradient).point,
            1426063360u);
  EXPECT_EQ(tried_workspace(conv(2, 192, 192, 14, 3), ConvPass::weight_gradient).point, 163774464u);
}

TEST(TriedWorkspace, IsChosenForKernelsAsLargeAsPictures) {
  std::vector<uint64_t> numbers = conv(128, 1, 128, 128, 128);
  numbers[16] = numbers[17] = 1;
  EXPECT_TRUE(has_no_other_engine(numbers));
  EXPECT_NEAR(static_cast<double>(of(numbers).point) / 8665432064, 1.0, 0.02);
  numbers = conv(64, 1, 64, 100, 96);
  numbers[16] = numbers[17] = 0;
  EXPECT_TRUE(has_no_other_engine(numbers));
  EXPECT_NEAR(static_cast<double>(of(numbers).point) / 547618816, 1.0, 0.03);
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
