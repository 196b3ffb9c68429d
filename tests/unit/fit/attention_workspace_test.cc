// SPDX-License-Identifier: Apache-2.0
// Numbers measured on an NVIDIA H100 80GB HBM3 with torch 2.11 and cuDNN 9.19: what the allocator
// was asked for during the backward pass beside the gradients.
#include "fit/attention_workspace.h"

#include <gtest/gtest.h>

#include <array>

namespace cufit::fit {
namespace {

SizeAt of(uint64_t kernel, uint64_t bits, uint64_t length, uint64_t size, uint64_t key_heads) {
  const std::array<uint64_t, 8> numbers{kernel, bits, 2, 8, length, length, size, key_heads};
  return attention_workspace(numbers);
}

TEST(AttentionWorkspace, IsWhatCudnnAskedFor) {
  EXPECT_EQ(of(10, 16, 1000, 64, 8).point, 4160256u);
  EXPECT_EQ(of(10, 16, 1000, 80, 8).point, 5184256u);
  EXPECT_EQ(of(10, 16, 128, 64, 8).point, 532736u);
  EXPECT_EQ(of(10, 16, 1000, 64, 4).point, 8256256u);  // two heads of queries for each of keys
  EXPECT_EQ(of(10, 16, 128, 64, 4).point, 1057024u);
}

TEST(AttentionWorkspace, OfTheMemoryEfficientKernelIsNotBelowWhatWasSeen) {
  EXPECT_GE(of(9, 32, 1000, 64, 8).point, 4198400u + 4096000u);
  EXPECT_GE(of(9, 32, 128, 64, 8).point, 524800u + 524288u);
}

TEST(AttentionWorkspace, OfForwardOrOtherNumbersIsNone) {
  EXPECT_EQ(of(2, 16, 1000, 64, 8).upper, 0u);
  EXPECT_EQ(attention_workspace({}).upper, 0u);
  const std::array<uint64_t, 8> huge{8, 16, UINT64_MAX, 8, UINT64_MAX, 1, UINT64_MAX, 8};
  EXPECT_EQ(attention_workspace(huge).upper, 0u);
}

}  // namespace
}  // namespace cufit::fit
