// SPDX-License-Identifier: Apache-2.0
#include "fit/step_timeline.h"

#include <gtest/gtest.h>

#include "fit_fixture.h"

namespace cufit::fit {
namespace step_timeline_test {

Setup setup() {
  Setup out;
  out.version = memory::version_profile(2, 11);
  return out;
}

TEST(StepTimeline, ItsPeaksAreThoseOfThePrediction) {
  const Result<StepProgram> program = aligned({small_program(8), small_program(16)});
  ASSERT_TRUE(program);
  const Result<Prediction> prediction = predict(*program, 32, setup());
  for (const uint32_t points : {600u, 7u, 1u}) {
    const Result<StepTimeline> timeline = step_timeline(*program, 32, setup(), points);
    ASSERT_TRUE(timeline);
    EXPECT_LE(timeline->points.size(), points);
    EXPECT_EQ(timeline->events, program->events.size());
    uint64_t reserved = 0;
    for (const TimelinePoint& point : timeline->points) {
      EXPECT_LE(point.allocated, timeline->points[timeline->peak].allocated);
      reserved = std::max(reserved, point.reserved);
    }
    EXPECT_EQ(timeline->points[timeline->peak].allocated, prediction->peak_allocated);
    EXPECT_EQ(reserved, prediction->peak_reserved);
  }
}

TEST(StepTimeline, RangesFollowThePhasesWithoutGaps) {
  const Result<StepProgram> program = aligned({small_program(8), small_program(16)});
  const Result<StepTimeline> timeline = step_timeline(*program, 8, setup());
  ASSERT_TRUE(timeline);
  uint32_t end = 0, steps = 0;
  bool backward = false;
  for (const TimelineRange& range : timeline->ranges) {
    EXPECT_EQ(range.first, end);
    EXPECT_GT(range.end, range.first);
    end = range.end;
    steps = std::max(steps, range.step);
    backward = backward || range.phase == TracePhase::backward;
  }
  EXPECT_EQ(end, timeline->points.size());
  EXPECT_EQ(timeline->ranges.front().phase, TracePhase::setup);
  EXPECT_EQ(steps, 3u);
  EXPECT_TRUE(backward);
}

TEST(StepTimeline, EndsWhereMemoryRunsOut) {
  const Result<StepProgram> program = aligned({small_program(8), small_program(16)});
  fit::Setup bounded = setup();
  bounded.capacity = 100 * k_mib;
  const Result<StepTimeline> timeline = step_timeline(*program, 8, bounded);
  ASSERT_TRUE(timeline);
  EXPECT_LT(timeline->events, program->events.size());
  EXPECT_FALSE(step_timeline(*aligned({small_program(8)}), 9, setup()));
}

}  // namespace step_timeline_test
}  // namespace cufit::fit
