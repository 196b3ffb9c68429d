// SPDX-License-Identifier: Apache-2.0
// Whether a number that a program was given is its batch size.
#include <gtest/gtest.h>

#include "fit/answer/traces.h"
#include "unit/fit/fit_fixture.h"

namespace cufit::fit {
namespace follows_number_test {

// Two steps: a batch of `inputs` MiB that comes from the CPU (0: none), activations, a constant.
formats::TraceEvents steps_of(uint64_t inputs, uint64_t activations, const char* loader = "") {
  TraceWriter out;
  if (*loader != '\0') out.fact("batch_found", loader);
  const Sites s = write_sites(out);
  for (int i = 0; i < 2; ++i) {
    out.mark(TraceMark::step_begins);
    if (inputs != 0) out.category(out.alloc(inputs * k_mib, s.data), StorageCategory::input);
    out.free(out.alloc(activations * k_mib, s.act));
    out.free(out.alloc(3 * k_mib, s.loss));
    out.mark(TraceMark::step_ends);
  }
  out.end();
  return out.read();
}

TEST(FollowsNumber, ByTheBatchesElseByTheActivations) {
  EXPECT_TRUE(follows_number(steps_of(2, 8), 2, steps_of(4, 16), 4));
  EXPECT_TRUE(follows_number(steps_of(2, 8), 2, steps_of(4, 9), 4));
  EXPECT_FALSE(follows_number(steps_of(2, 8), 2, steps_of(2, 8), 4));
  // Some of the batches follow lengths, too.
  EXPECT_TRUE(follows_number(steps_of(2, 8), 2, steps_of(3, 16), 4));
  EXPECT_FALSE(follows_number(steps_of(2, 8), 2, steps_of(3, 12), 4));
  // Made on the GPU, or not at all.
  EXPECT_TRUE(follows_number(steps_of(0, 8), 2, steps_of(0, 16), 4));
  EXPECT_TRUE(follows_number(steps_of(1, 8), 2, steps_of(1, 16), 4));
  EXPECT_FALSE(follows_number(steps_of(0, 8), 2, steps_of(0, 12), 4));
  EXPECT_FALSE(follows_number(steps_of(0, 2), 2, steps_of(0, 4), 4));  // most is another thing
}

TEST(FollowsNumber, NotWhereADataLoaderTakesAShareOfIt) {
  EXPECT_TRUE(follows_number(steps_of(2, 8, "1"), 2, steps_of(4, 16, "1"), 4));
  EXPECT_TRUE(follows_number(steps_of(2, 8, "2"), 2, steps_of(4, 16, "4"), 4));
  EXPECT_FALSE(follows_number(steps_of(2, 8, "1"), 2, steps_of(4, 16, "2"), 4));
}

}  // namespace follows_number_test
}  // namespace cufit::fit
