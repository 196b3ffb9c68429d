// SPDX-License-Identifier: Apache-2.0
#include "analysis/advice.h"

#include <gtest/gtest.h>

#include "unit/analysis/traces.h"

namespace cufit::analysis {
namespace {

void expect_same(const std::vector<memory::Answer>& a, const std::vector<memory::Answer>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(b[i].question.settings);
    EXPECT_EQ(a[i].question.settings, b[i].question.settings);
    EXPECT_EQ(a[i].result.stats.reserved_bytes.peak, b[i].result.stats.reserved_bytes.peak);
    EXPECT_EQ(a[i].result.stats.allocated_bytes.peak, b[i].result.stats.allocated_bytes.peak);
    EXPECT_EQ(a[i].result.stats.cuda_mallocs, b[i].result.stats.cuda_mallocs);
    EXPECT_EQ(a[i].result.oom.has_value(), b[i].result.oom.has_value());
    EXPECT_EQ(a[i].result.not_modelled, b[i].result.not_modelled);
  }
}

// What was tried beside the verification is what is tried after it.
TEST(Advice, EarlyTrialsAreTheTrials) {
  size_t early_ones = 0;
  for (const auto& names :
       {std::span<const char* const>(k_all_traces), std::span<const char* const>(k_failures),
        std::span<const char* const>(k_causes)})
    for (const char* name : names) {
      SCOPED_TRACE(name);
      const memory::Snapshot snapshot = read_trace(name);
      EarlyTrials early;
      const memory::Study study = *memory::study_of(
          snapshot, memory::busiest_device(snapshot), std::nullopt,
          [&](const memory::Study& unverified) { early = try_early(unverified); });
      expect_same(*try_settings(study, early), *try_settings(study, {}));
      early_ones += early.answers.size();
    }
  EXPECT_GE(early_ones, 100u);
}

TEST(Advice, EarlyTrialsOfAnotherReadingDoNotCount) {
  const memory::Snapshot snapshot = read_trace("amp");
  EarlyTrials early;
  const memory::Study study =
      *memory::study_of(snapshot, 0, std::nullopt,
                        [&](const memory::Study& unverified) { early = try_early(unverified); });
  ASSERT_FALSE(early.answers.empty());
  const size_t at = 1;  // the first after the recorded settings
  early.answers[0].result.stats.reserved_bytes.peak = 7;
  EXPECT_EQ((*try_settings(study, early))[at].result.stats.reserved_bytes.peak, 7u);
  EarlyTrials other = early;
  other.version = memory::version_profile(2, 3);
  expect_same(*try_settings(study, other), *try_settings(study, {}));
  other = early;
  other.recorded.max_split_size = 1u << 27;
  expect_same(*try_settings(study, other), *try_settings(study, {}));
  memory::Study unread = study;
  unread.settings_unread = true;
  EXPECT_NE((*try_settings(unread, early))[at].result.stats.reserved_bytes.peak, 7u);
}

}  // namespace
}  // namespace cufit::analysis
