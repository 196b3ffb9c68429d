// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/advice.h"

#include <gtest/gtest.h>

#include "memory/analysis/diagnosis.h"
#include "unit/memory/analysis/traces.h"

namespace cufit::analysis {
namespace advice_test {

void expect_same(const std::vector<memory::Answer>& a, const std::vector<memory::Answer>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(b[i].question.settings);
    EXPECT_EQ(a[i].question.settings, b[i].question.settings);
    EXPECT_EQ(a[i].result.stats.reserved_bytes.peak, b[i].result.stats.reserved_bytes.peak);
    EXPECT_EQ(a[i].result.stats.allocated_bytes.peak, b[i].result.stats.allocated_bytes.peak);
    EXPECT_EQ(a[i].result.stats.cuda_mallocs, b[i].result.stats.cuda_mallocs);
    EXPECT_EQ(a[i].result.oom.has_value(), b[i].result.oom.has_value());
    EXPECT_EQ(a[i].result.replay_limitations, b[i].result.replay_limitations);
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
      const memory::VerifiedRecording verified = *memory::verify_recording(
          snapshot, memory::busiest_device(snapshot), std::nullopt,
          [&](const memory::VerifiedRecording& unverified) { early = early_trials(unverified); });
      expect_same(*try_settings(verified, early), *try_settings(verified, {}));
      if (early.inquiry) early_ones += early.inquiry->replays();
    }
  EXPECT_GE(early_ones, 100u);
}

// A refusal that was recorded is a refusal, also where a library or the program caught it.
TEST(Advice, TheRecordedRunDidNotGetWhatItAskedFor) {
  size_t caught = 0, others = 0;
  for (size_t i = 0; i < 2 * std::size(k_failures); ++i) {
    const char* name = k_failures[i / 2];
    SCOPED_TRACE(name);
    memory::Snapshot snapshot = read_trace(name);
    const uint32_t device = memory::busiest_device(snapshot);
    const memory::Trace& trace = snapshot.traces[device];
    if (i % 2 == 1) {  // as if it had asked for something else at once: it was caught
      size_t at = trace.first;
      const size_t end = trace.first + trace.count;
      while (at < end && snapshot.events[at].action != memory::Action::oom) ++at;
      if (at + 1 >= end) continue;
      memory::TraceEvent& next = snapshot.events[at + 1];
      next.action = memory::Action::alloc;
      next.address = uint64_t{1} << 40;
      next.size = 512;
    }
    const memory::VerifiedRecording verified =
        *memory::verify_recording(snapshot, device, std::nullopt);
    const Diagnosis diagnosis = *diagnose(snapshot, verified, std::nullopt);
    if (!diagnosis.oom || diagnosis.oom->served_by_model) continue;
    ++(diagnosis.oom->caught ? caught : others);
    EXPECT_EQ(diagnosis.advice[0].survives, false);
    for (const Advice& one : diagnosis.advice) {
      if (one.remedy != Remedy::settings || one.survives != true || !diagnosis.oom->caught)
        continue;
      memory::Question question;
      question.settings = one.settings;
      (diagnosis.limits->card_full ? question.capacity : question.allowed) =
          diagnosis.limits->at_least;
      const auto answers = memory::ask(verified, std::span(&question, 1));
      EXPECT_TRUE((*answers)[0].result.served_caught_failure) << one.settings;
    }
  }
  EXPECT_GE(caught, 1u);
  EXPECT_GE(others, 5u);
}

// What was outlined beside the verification, without sizes, is what is seen after it.
TEST(Advice, AnEarlyOutlineIsTheOutline) {
  size_t without_marks = 0, with_marks = 0;
  for (const auto& names :
       {std::span<const char* const>(k_all_traces), std::span<const char* const>(k_failures),
        std::span<const char* const>(k_causes)})
    for (const char* name : names) {
      SCOPED_TRACE(name);
      const memory::Snapshot snapshot = read_trace(name);
      std::optional<Outline> outline;
      const memory::VerifiedRecording verified =
          *memory::verify_recording(snapshot, memory::busiest_device(snapshot), std::nullopt,
                                    [&](const memory::VerifiedRecording& unverified) {
                                      outline = outline_of(snapshot, unverified);
                                    });
      const Observation late = observe(snapshot, verified, std::nullopt);
      const Observation early = observe(snapshot, verified, std::nullopt, std::move(outline));
      ++(late.steps.marks.empty() ? without_marks : with_marks);
      EXPECT_EQ(early.steps.begins, late.steps.begins);
      EXPECT_EQ(early.steps.known_by, late.steps.known_by);
      EXPECT_EQ(early.categories, late.categories);
      EXPECT_EQ(early.history.trend, late.history.trend);
      EXPECT_EQ(early.history.grows, late.history.grows);
      EXPECT_EQ(early.peak.by_category, late.peak.by_category);
      EXPECT_EQ(early.lifetimes.sizes_are_exact, late.lifetimes.sizes_are_exact);
      ASSERT_EQ(early.lifetimes.rows.size(), late.lifetimes.rows.size());
      for (size_t i = 0; i < early.lifetimes.rows.size(); ++i)
        ASSERT_EQ(early.lifetimes.rows[i].block_bytes, late.lifetimes.rows[i].block_bytes) << i;
    }
  EXPECT_GE(with_marks, 10u);
  EXPECT_GE(without_marks, 1u);
}

TEST(Advice, EarlyTrialsOfAnotherReadingDoNotCount) {
  const memory::Snapshot snapshot = read_trace("amp");
  EarlyTrials early;
  const memory::VerifiedRecording verified = *memory::verify_recording(
      snapshot, 0, std::nullopt,
      [&](const memory::VerifiedRecording& unverified) { early = early_trials(unverified); });
  ASSERT_TRUE(early.inquiry);
  // Answers of another recording, so that it shows where they count.
  const size_t at = 1;  // the first after the recorded settings
  const memory::Snapshot other_snapshot = read_trace("cnn");
  early.inquiry =
      early_trials(*memory::verify_recording(other_snapshot, 0, memory::version_profile(2, 11)))
          .inquiry;
  ASSERT_TRUE(early.inquiry);
  const uint64_t foreign = early.inquiry->answers()[0].result.stats.reserved_bytes.peak;
  ASSERT_NE((*try_settings(verified, {}))[at].result.stats.reserved_bytes.peak, foreign);
  EXPECT_EQ((*try_settings(verified, early))[at].result.stats.reserved_bytes.peak, foreign);
  EarlyTrials other = early;
  other.version = memory::version_profile(2, 3);
  expect_same(*try_settings(verified, other), *try_settings(verified, {}));
  other = early;
  other.recorded.max_split_size = 1u << 27;
  expect_same(*try_settings(verified, other), *try_settings(verified, {}));
  memory::VerifiedRecording unread = verified;
  unread.settings_unread = true;
  EXPECT_NE((*try_settings(unread, early))[at].result.stats.reserved_bytes.peak, foreign);
}

}  // namespace advice_test
}  // namespace cufit::analysis
