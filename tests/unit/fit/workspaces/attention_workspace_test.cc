// SPDX-License-Identifier: Apache-2.0
// Numbers measured on an NVIDIA H100 80GB HBM3 with torch 2.11 and cuDNN 9.19: what the allocator
// was asked for during the backward pass beside the gradients.
#include "fit/workspaces/attention_workspace.h"

#include <gtest/gtest.h>

#include <array>

namespace cufit::fit {
namespace attention_workspace_test {

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
  EXPECT_GE(of(9, 32, 1000, 64, 8).upper, 4198400u + 4096000u);
  EXPECT_GE(of(9, 32, 128, 64, 8).upper, 524800u + 524288u);
}

// On an NVIDIA H200, torch 2.11: its largest request, and four bytes for each row of the queries.
TEST(AttentionWorkspace, IsWhatTheMemoryEfficientKernelAskedFor) {
  struct Seen {
    uint64_t bits, batch, heads, queries, keys, size, bytes;
  };
  for (const Seen& seen :
       {Seen{32, 5, 5, 128, 512, 8, 820000}, Seen{32, 2, 7, 512, 63, 8, 1836800},
        Seen{16, 5, 10, 65, 100, 56, 1640000}, Seen{16, 2, 12, 1000, 257, 56, 6297600},
        Seen{16, 1, 1, 257, 512, 80, 196656}, Seen{32, 1, 1, 130, 63, 72, 131136},
        Seen{32, 1, 1, 257, 64, 160, 295056}, Seen{16, 1, 1, 63, 128, 192, 360496},
        Seen{16, 1, 1, 64, 257, 256, 786496}, Seen{16, 13, 1, 250, 6007, 640, 72421440}}) {
    const std::array<uint64_t, 8> numbers{
        9, seen.bits, seen.batch, seen.heads, seen.queries, seen.keys, seen.size, seen.heads};
    EXPECT_EQ(attention_workspace(numbers).point,
              seen.bytes + 4 * seen.batch * seen.heads * seen.queries)
        << seen.size << " " << seen.bits;
  }
  const std::array<uint64_t, 8> fp32{9, 32, 5, 5, 128, 512, 8, 5},
      half{9, 16, 5, 5, 128, 512, 8, 5};
  EXPECT_EQ(attention_product(fp32).point, 102400u);
  EXPECT_EQ(attention_product(half).point, 0u);
}

TEST(AttentionWorkspace, OfForwardOrOtherNumbersIsNone) {
  EXPECT_EQ(of(2, 16, 1000, 64, 8).upper, 0u);
  EXPECT_EQ(attention_workspace({}).upper, 0u);
  const std::array<uint64_t, 8> huge{8, 16, UINT64_MAX, 8, UINT64_MAX, 1, UINT64_MAX, 8};
  EXPECT_EQ(attention_workspace(huge).upper, 0u);
}

}  // namespace attention_workspace_test
}  // namespace cufit::fit
