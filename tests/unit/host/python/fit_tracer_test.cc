// SPDX-License-Identifier: Apache-2.0
// The tracer of `cufit fit` runs in the user's Python: what of it needs no torch is checked by
// tests/fit/*_check.py.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace cufit::host {
namespace fit_tracer_test {

TEST(FitTracer, DoesWithoutTorchWhatTheCheckSays) {
  if (std::system("python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null") != 0)
    GTEST_SKIP() << "no python3";
  for (const char* check : {"tracer", "after_steps", "within_epoch", "blocks", "launchers"})
    EXPECT_EQ(std::system(("python3 tests/fit/" + std::string(check) + "_check.py").c_str()), 0)
        << check;
}

}  // namespace fit_tracer_test
}  // namespace cufit::host
