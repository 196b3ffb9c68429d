// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/settings_curves.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/memory/analysis/traces.h"

namespace cufit::analysis {
namespace settings_curves_test {

// The curves and `mem replay` speak of the same runs.
TEST(WhatIfs, PeakWhereTheReplaysAnswersPeak) {
  for (const char* name : {"varlen", "trace-gpt2-stacks", "streams", "graphs", "varlen-ring"}) {
    SCOPED_TRACE(name);
    const memory::VerifiedRecording& verified = real_trace(name).verified;
    const std::vector<WhatIf> what_ifs = analysis::what_ifs(verified);
    EXPECT_EQ(what_ifs.size(), memory::usual_settings().size());
    EXPECT_TRUE(what_ifs.front().as_recorded);
    for (const WhatIf& what_if : what_ifs) {
      SCOPED_TRACE(what_if.settings);
      memory::Question question;
      question.settings = what_if.settings;
      const auto answers = memory::ask(verified, std::span(&question, 1));
      ASSERT_TRUE(answers);
      const memory::ReplayResult& answer = answers->front().result;
      EXPECT_EQ(what_if.result.stats.reserved_bytes.peak, answer.stats.reserved_bytes.peak);
      EXPECT_EQ(what_if.result.replay_limitations, answer.replay_limitations);
      // Of the calls within one request only the outcome is in the series.
      const uint64_t top =
          *std::max_element(what_if.reserved.bytes.begin(), what_if.reserved.bytes.end());
      EXPECT_LE(top, answer.stats.reserved_bytes.peak);
      EXPECT_EQ(what_if.reserved.bytes.back(), answer.stats.reserved_bytes.current);
      EXPECT_FALSE(what_if.within_limit);
    }
    for (size_t i = 2; i < what_ifs.size(); ++i)
      EXPECT_LE(what_ifs[i - 1].result.stats.reserved_bytes.peak,
                what_ifs[i].result.stats.reserved_bytes.peak);
  }
}

// A run that died: its own settings cannot live within a limit below what they asked for last.
TEST(WhatIfs, SayWhoLivesWithinTheLimitOfARunThatDied) {
  const memory::VerifiedRecording& verified = real_trace("oom-varlen").verified;
  ASSERT_TRUE(verified.limit);
  const std::vector<WhatIf> what_ifs = analysis::what_ifs(verified);
  for (const WhatIf& what_if : what_ifs) {
    SCOPED_TRACE(what_if.settings);
    ASSERT_TRUE(what_if.within_limit);
    const uint64_t peak = what_if.result.stats.reserved_bytes.peak;
    if (what_if.as_recorded) {
      EXPECT_EQ(*what_if.within_limit, Outcome::dies);
    }
    if (peak <= verified.limit->at_least) {
      EXPECT_NE(*what_if.within_limit, Outcome::dies);
    }
    if (what_if.result.stats.allocated_bytes.peak >= verified.limit->below) {
      EXPECT_NE(*what_if.within_limit, Outcome::survives);
    }
  }
}

}  // namespace settings_curves_test
}  // namespace cufit::analysis
