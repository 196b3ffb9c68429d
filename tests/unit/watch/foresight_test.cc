// SPDX-License-Identifier: Apache-2.0
// Simulated runs before memory_trend: every leak is named at half of its way or earlier, no healthy run is.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "unit/watch/foresight_judge.h"

namespace cufit::test {
namespace {

// Until more than half of their way these leak into what the allocator has free from long batches or an evaluation, and
// nothing shows outside: 48 of 80 GiB from the tenth part of the way on, to its half. They are not counted as leaks.
bool is_hidden(const MemoryRun& run) {
  return run.name.rfind("kept graphs, peaks", 0) == 0 ||
         run.name.rfind("epochs of uneven length", 0) == 0;
}

struct Tally {
  size_t leaks = 0, named = 0, covered = 0;
  size_t healthy = 0, alarms = 0;
  double latest = 0;
};

// A sanitizer makes the judging seven times slower; it wants the program's paths, not each run's verdict.
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t k_every = 12;
#else
constexpr size_t k_every = 1;
#endif

// With CUFIT_SHOW_RUNS each run is printed: a line of the table of src/watch/README.md.
Tally judge_all(const std::vector<MemoryRun>& runs) {
  const bool shown = std::getenv("CUFIT_SHOW_RUNS") != nullptr;
  Tally tally;
  for (size_t i = 0; i < runs.size(); i += k_every) {
    const MemoryRun& run = runs[i];
    const Judged got = judged(run);
    if (is_hidden(run)) {
      EXPECT_FALSE(got.named && got.way < 0.5) << run.name << ": it can be named; count it";
    } else if (run.leaks) {
      ++tally.leaks;
      const bool in_time = got.named && !got.early && got.way <= 0.5;
      tally.named += in_time;
      tally.latest = std::max(tally.latest, got.named ? got.way : 1);
      tally.covered += got.named && got.early_s <= got.truth_s && got.truth_s <= got.late_s;
      EXPECT_TRUE(in_time) << run.name << ": named " << got.named << " at " << got.at << " s, "
                           << got.way << " of its way";
    } else {
      ++tally.healthy;
      tally.alarms += got.named;
      EXPECT_FALSE(got.named) << run.name << ": at " << got.at << " s";
    }
    if (shown)
      std::printf(
          "%-52s %-7s %s at %6.0f s, %3.0f %% of the way; full in %.0f (%.0f to %.0f), was %.0f\n",
          run.name.c_str(), run.leaks ? "leak" : "healthy", got.named ? "named" : "-    ", got.at,
          got.way * 100, got.full_in_s, got.early_s, got.late_s, got.truth_s);
  }
  if (shown)
    std::printf(
        "leaks %zu, in time %zu, latest at %.0f %%, interval right %zu; healthy %zu, alarms %zu\n",
        tally.leaks, tally.named, tally.latest * 100, tally.covered, tally.healthy, tally.alarms);
  return tally;
}

TEST(Foresight, OfDevelopmentRuns) {
  const Tally tally = judge_all(development_runs());
  EXPECT_EQ(tally.alarms, 0u);
  EXPECT_EQ(tally.named, tally.leaks);
}

TEST(Foresight, OfLaterHeldOutRuns) {
  const Tally tally = judge_all(later_held_out_runs());
  EXPECT_EQ(tally.alarms, 0u);
  EXPECT_EQ(tally.named, tally.leaks);
}

// Constant memory costs no verdict.
TEST(Foresight, ThinningChangesNoVerdict) {
  for (const MemoryRun& run : held_out_runs()) {
    if (run.samples.size() > 5000 / k_every || run.name.find("#11") == std::string::npos) continue;
    const Judged thinned = judged(run), whole = judged(run, SIZE_MAX);
    EXPECT_EQ(thinned.named, whole.named) << run.name;
    if (run.leaks) {
      EXPECT_NEAR(thinned.way, whole.way, 0.1) << run.name;
    }
  }
}

TEST(Foresight, OfHeldOutRuns) {
  const Tally tally = judge_all(held_out_runs());
  EXPECT_EQ(tally.alarms, 0u);
  EXPECT_EQ(tally.named, tally.leaks);
}

}  // namespace
}  // namespace cufit::test
