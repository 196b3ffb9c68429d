// SPDX-License-Identifier: Apache-2.0
// Numbers from traces of bert, phi and deit3 on an NVIDIA H100, torch 2.11: the block that was
// asked for and freed while `sum` made the gradient of a bias.
#include "fit/workspaces/reduction_workspace.h"

#include <gtest/gtest.h>

#include <array>

namespace cufit::fit {
namespace reduction_workspace_test {

uint64_t of(uint64_t rows, uint64_t columns) {
  const std::array<uint64_t, 2> numbers{rows, columns};
  const SizeAt out = reduction_workspace(numbers, 132);
  EXPECT_EQ(out.point, out.upper);
  return out.point;
}

TEST(ReductionWorkspace, IsWhatWasAskedFor) {
  EXPECT_EQ(of(2048, 768), 12582912u);
  EXPECT_EQ(of(2048, 3072), 50331648u);
  EXPECT_EQ(of(2048, 30522), 23440896u);
  EXPECT_EQ(of(2048, 51200), 157286400u);
  EXPECT_EQ(of(4096, 768), 25165824u);
  EXPECT_EQ(of(9456, 384), 29097984u);
  EXPECT_EQ(of(9456, 1152), 87293952u);
  EXPECT_EQ(of(9456, 1536), 116391936u);
}

TEST(ReductionWorkspace, KeepsAValueWithItsPlace) {
  const std::array<uint64_t, 3> wide{16384, 1024, 16}, narrow{4096, 768, 16},
      hostile{4096, 768, 17};
  EXPECT_EQ(reduction_workspace(wide, 132).point, 536870912u);
  EXPECT_EQ(reduction_workspace(narrow, 132).point, 100663296u);
  EXPECT_EQ(reduction_workspace(hostile, 132).point, 0u);
}

TEST(ReductionWorkspace, FewRowsNeedNone) {
  EXPECT_EQ(of(8, 768), 0u);
  EXPECT_EQ(of(0, 768), 0u);
  EXPECT_EQ(of(1, 1), 0u);
  EXPECT_EQ(of(UINT64_MAX, UINT64_MAX), 0u);
  EXPECT_EQ(of(uint64_t{1} << 40, uint64_t{1} << 25), 0u);  // no machine has it
}

}  // namespace reduction_workspace_test
}  // namespace cufit::fit
