// SPDX-License-Identifier: Apache-2.0
// Steps against what the recorded programs really did: step counts and the step of death are those
// that the programs printed (tests/traces/runs.jsonl, tests/gpu/allocator_workload.py).
#include "memory/analysis/steps.h"

#include <gtest/gtest.h>

#include "traces.h"

namespace cufit::analysis {
namespace steps_test {

using memory::Action;

struct Truth {
  const char* trace;
  uint32_t finished;  // optimizer steps within the trace
  int oom_step;       // -1: lived
};

const Truth k_truth[] = {
    {"accum", 12, -1},           {"amp", 12, -1},
    {"amp-limit1.02", 1, 1},     {"amp-limit1.2", 12, -1},
    {"amp-roundup4", 12, -1},    {"cnn", 12, -1},
    {"graphs", 12, -1},          {"lora", 12, -1},
    {"oom-varlen", 1, 1},        {"streams", 12, -1},
    {"streams-split64", 12, -1}, {"trace-gpt2-stacks", 3, -1},
    {"trace-resnet", 8, -1},     {"trace-varlen", 30, -1},
    {"varlen", 12, -1},          {"varlen-expandable", 12, -1},
    {"varlen-limit1.02", 5, 5},  {"varlen-limit1.2", 12, -1},
};

void without_annotations(memory::Snapshot& snapshot) { snapshot.annotations.clear(); }

void without_stacks(memory::Snapshot& snapshot) {
  for (size_t i = 0; i < snapshot.events.size(); ++i) snapshot.events[i].stack = memory::k_no_stack;
}

std::optional<uint32_t> oom_event(const TestTrace& trace) {
  for (uint32_t i = 0; i < trace.lifetimes.events; ++i)
    if (trace.snapshot.events[i].action == Action::oom) return i;
  return std::nullopt;
}

void expect_truth(const Truth& truth, const TestTrace& trace, const Steps& steps) {
  SCOPED_TRACE(std::string(truth.trace) + " by " + to_string(steps.known_by));
  EXPECT_EQ(steps.finished, truth.finished);
  EXPECT_EQ(steps.first, 0u);
  const std::optional<uint32_t> oom = oom_event(trace);
  ASSERT_EQ(oom.has_value(), truth.oom_step >= 0);
  if (oom) {
    ASSERT_TRUE(steps.at(*oom).has_value());
    EXPECT_EQ(*steps.at(*oom), static_cast<uint32_t>(truth.oom_step));
  }
  ASSERT_FALSE(steps.begins.empty());
  EXPECT_TRUE(std::is_sorted(steps.begins.begin(), steps.begins.end()));
  EXPECT_FALSE(steps.at(0).has_value()) << "the model is not there yet";
}

bool is_failure(const Truth& truth) { return std::string(truth.trace).rfind("failures/", 0) == 0; }

TEST(Steps, ByAnnotations) {
  for (const Truth& truth : k_truth) {
    const TestTrace& trace = real_trace(truth.trace);
    const Steps steps = steps_of(trace.snapshot, 0, trace.lifetimes);
    // Before the first optimizer step only stacks can tell.
    EXPECT_EQ(steps.known_by,
              trace.snapshot.annotations.empty() ? StepsKnownBy::frames : StepsKnownBy::annotations)
        << truth.trace;
    expect_truth(truth, trace, steps);
  }
}

// The trace alone must tell the same, up to the few events between the optimizer's work and the
// frees of zero_grad.
TEST(Steps, ByFreesTheSame) {
  for (const Truth& truth : k_truth) {
    if (is_failure(truth)) continue;
    const Steps told =
        steps_of(real_trace(truth.trace).snapshot, 0, real_trace(truth.trace).lifetimes);
    memory::Snapshot snapshot = read_trace(truth.trace);
    without_annotations(snapshot);
    without_stacks(snapshot);
    const TestTrace trace = test_trace(std::move(snapshot));
    const Steps steps = steps_of(trace.snapshot, 0, trace.lifetimes);
    EXPECT_EQ(steps.known_by, StepsKnownBy::frees) << truth.trace;
    expect_truth(truth, trace, steps);
    ASSERT_EQ(steps.begins.size(), told.begins.size()) << truth.trace;
    for (size_t i = 0; i < steps.begins.size(); ++i)
      EXPECT_NEAR(steps.begins[i], told.begins[i], 4) << truth.trace << " step " << i;
  }
}

TEST(Steps, ByFramesTheSame) {
  for (const char* name : {"oom-varlen", "trace-gpt2-stacks", "failures/kept", "failures/quad"}) {
    memory::Snapshot snapshot = read_trace(name);
    without_annotations(snapshot);
    const TestTrace trace = test_trace(std::move(snapshot));
    const Steps steps = steps_of(trace.snapshot, 0, trace.lifetimes);
    EXPECT_EQ(steps.known_by, StepsKnownBy::frames);
    EXPECT_EQ(steps.begins,
              steps_of(real_trace(name).snapshot, 0, real_trace(name).lifetimes).begins);
  }
}

// The ring kept 9000 of 16291 events; the annotations tell of the five steps before.
TEST(Steps, OfARingThatOverflowed) {
  const TestTrace& ring = real_trace("varlen-ring");
  const Steps steps = steps_of(ring.snapshot, 0, ring.lifetimes);
  EXPECT_EQ(steps.first, 5u);
  EXPECT_EQ(steps.finished, 7u);
  EXPECT_EQ(steps.at(0), 5u);
  EXPECT_EQ(steps.at(ring.lifetimes.events - 1), 11u);
  // The lengths of the steps are those of the whole recording.
  const TestTrace& whole = real_trace("varlen");
  const Steps all = steps_of(whole.snapshot, 0, whole.lifetimes);
  ASSERT_EQ(all.begins.size(), 12u);
  for (size_t i = 2; i < steps.begins.size(); ++i)
    EXPECT_NEAR(steps.begins[i] - steps.begins[i - 1], all.begins[i + 5] - all.begins[i + 4], 8);

  memory::Snapshot snapshot = read_trace("varlen-ring");
  without_annotations(snapshot);
  const TestTrace bare = test_trace(std::move(snapshot));
  const Steps by_frees = steps_of(bare.snapshot, 0, bare.lifetimes);
  EXPECT_EQ(by_frees.finished, 7u);
  EXPECT_EQ(by_frees.first, 0u) << "without annotations nobody knows of the steps before";
}

// The first step is where allocations begin to go again: all parameters come before it.
TEST(Steps, SetupHoldsTheParameters) {
  const struct {
    const char* name;
    uint64_t bytes;  // after_model_allocated of the program
  } runs[] = {{"trace-varlen", 498558976}, {"oom-varlen", 498558976}};
  for (const auto& run : runs) {
    const TestTrace& trace = real_trace(run.name);
    const Steps steps = steps_of(trace.snapshot, 0, trace.lifetimes);
    uint64_t bytes = 0;
    for (const Lifetime& row : trace.lifetimes.rows)
      if (is_allocated(row, steps.begins[0] - 1)) bytes += row.block_bytes;
    EXPECT_GE(bytes, run.bytes) << run.name;
    EXPECT_LT(bytes, run.bytes + (1 << 21)) << run.name;  // and the first batch
  }
}

// No training: no steps, with frames or without.
TEST(Steps, UnknownWithoutTraining) {
  for (const char* name :
       {"failures/infer", "failures/frag", "failures/pending", "failures/weights"}) {
    EXPECT_FALSE(steps_of(real_trace(name).snapshot, 0, real_trace(name).lifetimes).known())
        << name;
    memory::Snapshot snapshot = read_trace(name);
    without_stacks(snapshot);
    const TestTrace bare = test_trace(std::move(snapshot));
    EXPECT_FALSE(steps_of(bare.snapshot, 0, bare.lifetimes).known()) << name;
  }
}

// Half of a step, and no optimizer: nothing says what it is.
TEST(Steps, UnknownWhereNothingSpeaks) {
  memory::Snapshot snapshot = read_trace("varlen");
  without_annotations(snapshot);
  snapshot.traces[0].count = 600;
  const TestTrace trace = test_trace(std::move(snapshot));
  const Steps steps = steps_of(trace.snapshot, 0, trace.lifetimes);
  EXPECT_FALSE(steps.known());
  EXPECT_TRUE(steps.begins.empty());
  EXPECT_FALSE(steps.at(300).has_value());
}

}  // namespace steps_test
}  // namespace cufit::analysis
