// SPDX-License-Identifier: Apache-2.0
#include "resolve/quota/trial_verdict.h"

#include <gtest/gtest.h>

namespace cufit::resolve {
namespace trial_verdict_test {

Proof proof(const char* phase, int below, int above, uint64_t refusals, uint64_t card = 0) {
  return judge({phase, below, above, refusals, card, ""});
}

TEST(TrialVerdict, OnlyARefusalByTheQuotaProves) {
  EXPECT_EQ(proof("done", 0, 2, 1), Proof::holds);
  EXPECT_EQ(proof("done", 0, 2, 0), Proof::unproved);
  EXPECT_EQ(proof("done", 0, 0, 0), Proof::leaks);
  EXPECT_EQ(proof("done", 2, 0, 1), Proof::leaks);
  EXPECT_EQ(proof("done", 2, 2, 2), Proof::blocks);
  EXPECT_EQ(proof("done", 2, 2, 1, 1), Proof::no_room);
  EXPECT_EQ(proof("done", 2, 2, 2, 1), Proof::no_room);  // torch asks twice
  EXPECT_EQ(proof("done", 2, 2, 0), Proof::no_room);
  EXPECT_EQ(proof("done", 0, 719, 0), Proof::failed);
  EXPECT_EQ(proof("cuInit", 100, -1, 0), Proof::failed);
  EXPECT_EQ(proof("timeout", -1, -1, 0), Proof::failed);
  EXPECT_EQ(proof("missing", -1, -1, 0), Proof::missing);
}

TEST(TrialVerdict, AllHoldNeedsOne) {
  const auto trial = [](Proof what) {
    Trial out;
    out.proof = what;
    return out;
  };
  EXPECT_FALSE(all_hold({}));
  EXPECT_FALSE(all_hold({trial(Proof::missing)}));
  EXPECT_TRUE(all_hold({trial(Proof::missing), trial(Proof::holds)}));
  EXPECT_FALSE(all_hold({trial(Proof::holds), trial(Proof::unproved)}));
}

// Whatever a context takes: what must be refused is more than the limit by itself.
TEST(TrialVerdict, SizesLieOnBothSides) {
  for (uint64_t limit :
       {k_least_trial_limit, uint64_t{2} << 30, uint64_t{80} << 30, (uint64_t{1} << 30) + 12345}) {
    EXPECT_GT(trial_sizes(limit, limit).above, limit);
    EXPECT_LE(trial_sizes(limit, limit).below, limit / 4);
    EXPECT_GT(trial_sizes(limit, limit).below, 0u);
    EXPECT_LE(trial_sizes(limit, limit / 2).below, limit / 8);
    EXPECT_EQ(trial_sizes(limit, limit / 2).above, trial_sizes(limit, limit).above);
  }
}

}  // namespace trial_verdict_test
}  // namespace cufit::resolve
