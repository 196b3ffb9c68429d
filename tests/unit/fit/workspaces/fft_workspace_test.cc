// SPDX-License-Identifier: Apache-2.0
// Numbers measured on an NVIDIA H200 with torch 2.11: what the allocator was asked for beside the
// result and, of what goes to real values, the copy of the input.
#include "fit/workspaces/fft_workspace.h"

#include <gtest/gtest.h>

#include <vector>

namespace cufit::fit {
namespace fft_workspace_test {

SizeAt of(std::vector<uint64_t> numbers) { return fft_workspace(numbers); }

TEST(FftWorkspace, IsWhatCufftAskedFor) {
  EXPECT_EQ(of({0, 32, 16, 600}).point, 0u);
  EXPECT_EQ(of({0, 32, 1000, 4096}).point, 0u);
  EXPECT_EQ(of({0, 32, 16, 16000}).point, 1024000u);
  EXPECT_NEAR(static_cast<double>(of({0, 32, 256, 56349}).point), 293633024.0, 0.01 * 293633024);
  EXPECT_EQ(of({1, 32, 256, 4410}).point, 4515840u);
  EXPECT_NEAR(static_cast<double>(of({1, 32, 512, 23855}).point), 245467136.0, 0.01 * 245467136);
  EXPECT_EQ(of({2, 32, 128, 44100}).point, 45158400u);
  EXPECT_EQ(of({2, 32, 256, 13447}).point, 27539456u);
  EXPECT_EQ(of({0, 32, 1024, 256, 200}).upper, 0u);  // a plane
  EXPECT_GE(of({0, 32, 1, 31585}).upper, 1279000u);  // 10.1 times its values
}

TEST(FftWorkspace, OfOtherNumbersIsNone) {
  EXPECT_EQ(of({}).upper, 0u);
  EXPECT_EQ(of({3, 32, 1, 4096}).upper, 0u);
  EXPECT_EQ(of({0, 16, 1, 4096}).upper, 0u);
  EXPECT_EQ(of({0, 32, 1, UINT64_MAX}).upper, 0u);
  EXPECT_LE(of({0, 32, UINT64_MAX, 4294967291}).upper, uint64_t{1} << 48);
}

}  // namespace fft_workspace_test
}  // namespace cufit::fit
