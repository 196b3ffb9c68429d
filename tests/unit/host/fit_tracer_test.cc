// SPDX-License-Identifier: Apache-2.0
// The tracer of `cufit fit` runs in the user's Python: its parts that need no torch are checked by
// tests/fit/tracer_check.py, what it says of kernels by tests/fit/blocks_check.py.
#include <gtest/gtest.h>

#include <cstdlib>

namespace cufit::host {
namespace {

TEST(FitTracer, DoesWithoutTorchWhatTheCheckSays) {
  if (std::system("python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null") != 0)
    GTEST_SKIP() << "no python3";
  EXPECT_EQ(std::system("python3 tests/fit/tracer_check.py"), 0);
  EXPECT_EQ(std::system("python3 tests/fit/blocks_check.py"), 0);
}

}  // namespace
}  // namespace cufit::host
