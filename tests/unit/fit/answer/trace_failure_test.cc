// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/trace_failure.h"

#include <gtest/gtest.h>

#include "unit/fit/fit_fixture.h"

namespace cufit::fit {
namespace trace_failure_test {

using formats::TraceEnd;

// `steps` that ended, then what `last` writes.
template <class Last>
formats::TraceEvents traced(int steps, TraceEnd end, const Last& last) {
  TraceWriter out(8);
  out.fact("torch", "2.9.0");
  const Sites sites = write_sites(out);
  for (int i = 0; i < steps; ++i) write_step(out, sites, 1, 0, i == 0);
  last(out);
  if (end != TraceEnd::cut_off) out.end(end);
  return out.read();
}
formats::TraceEvents traced(int steps, TraceEnd end) {
  return traced(steps, end, [](TraceWriter&) {});
}

struct Judged {
  std::optional<TraceFailure> failure;
  std::vector<Warning> warnings;
  std::string kind() const { return failure ? failure->kind : ""; }
  std::string next() const { return failure ? failure->next : ""; }
};
Judged judged(const formats::TraceEvents& events, const std::string& said = "", int code = 0) {
  Judged out;
  out.failure = trace_failure(&events, code, said, out.warnings);
  return out;
}

TEST(TraceFailure, IsNoneWhereStepsWereSeen) {
  EXPECT_FALSE(judged(traced(3, TraceEnd::steps_seen)).failure);
  EXPECT_FALSE(judged(traced(1, TraceEnd::script_ended)).failure);
  EXPECT_EQ(ended_steps(traced(3, TraceEnd::steps_seen)), 3u);
}

TEST(TraceFailure, AfterTwoStepsIsAWarning) {
  const Judged got = judged(traced(2, TraceEnd::script_failed), "Traceback\nKeyError: 'x'\n");
  EXPECT_FALSE(got.failure);
  ASSERT_EQ(got.warnings.size(), 1u);
  EXPECT_EQ(got.warnings[0].id, "stopped_early");
  EXPECT_EQ(got.warnings[0].args.at("detail"), "KeyError: 'x'");
  EXPECT_EQ(judged(traced(1, TraceEnd::script_failed)).kind(), "failed");
}

// What neither PyTorch nor the tracer raised is mended in the program.
TEST(TraceFailure, NamesTheProgramsOwnError) {
  const auto next = [](const char* raised, const char* error, const char* place = "train.py:7",
                       bool made_up = false) {
    return judged(traced(0, TraceEnd::script_failed,
                         [&](TraceWriter& out) {
                           if (made_up) out.note("data_dependent", "item", "train.py:5");
                           if (raised[0] != 0) out.fact("raised_in", raised);
                           out.note("error", error, place);
                         }),
                  "", 1)
        .next();
  };
  EXPECT_EQ(next("program", "KeyError: 'lr'"), "own");
  EXPECT_EQ(next("library", "JSONDecodeError: Expecting value"), "own");
  EXPECT_EQ(next("program", "FileNotFoundError: train.bin"), "missing");
  // It may come of the trace.
  EXPECT_EQ(next("torch", "KeyError: 'lr'"), "function");
  EXPECT_EQ(next("", "KeyError: 'lr'"), "function");  // of an older tracer
  EXPECT_EQ(next("program", "KeyError: 'lr'", ""), "function");
  EXPECT_EQ(next("program", "KeyError: 'lr'", "train.py:7", true), "function");
  EXPECT_EQ(next("program", "RuntimeError: mat1 and mat2"), "function");
  EXPECT_EQ(next("program", "AttributeError: 'FakeTensor' object has no attribute 'x'"),
            "function");
}

TEST(TraceFailure, SendsToWhatAProgramSaidThatEndedItself) {
  const formats::TraceEvents nothing = traced(0, TraceEnd::script_ended);
  EXPECT_EQ(judged(nothing, "usage: train.py --data DIR", 2).next(), "exited");
  EXPECT_EQ(judged(nothing).next(), "device");
}

TEST(TraceFailure, SaysWhatKindItIs) {
  EXPECT_EQ(judged(traced(0, TraceEnd::script_ended)).kind(), "no_storage");
  EXPECT_EQ(judged(traced(1, TraceEnd::cut_off)).kind(), "cut_off");
  const auto alloc = [](TraceWriter& out) { out.alloc(8, 0); };
  const Judged step = judged(traced(0, TraceEnd::script_ended, alloc));
  EXPECT_EQ(step.kind(), "no_step");
  EXPECT_EQ(step.next(), "step");
  EXPECT_EQ(step.failure->storages, 1u);
  EXPECT_EQ(step.failure->peak_allocated, 8u);
  EXPECT_EQ(step.failure->torch, "2.9.0");
  const Judged late = judged(traced(1, TraceEnd::script_failed, [](TraceWriter& out) {
    out.note("timed_out", "", "train.py:7");
  }));
  EXPECT_EQ(late.kind(), "timed_out");
  EXPECT_EQ(late.failure->source, "train.py:7");
}

TEST(TraceFailure, WithoutATraceGoesByTheExitCode) {
  std::vector<Warning> warnings;
  EXPECT_EQ(trace_failure(nullptr, 0, "done", warnings)->next, "python");
  const std::optional<TraceFailure> failed =
      trace_failure(nullptr, 2, "no such file\n\n", warnings);
  EXPECT_EQ(failed->next, "alone");
  EXPECT_EQ(failed->detail, "no such file");
}

TEST(TraceFailure, NextStepFollowsTheException) {
  const std::pair<const char*, const char*> rows[] = {
      {"ModuleNotFoundError: No module named 'x'", "missing"},
      {"DynamicOutputShapeException: aten.nonzero", "values"},
      {"RuntimeError: Creating a new Tensor subclass X", "own_tensor"},
      {"RuntimeError: Found no NVIDIA driver on your system", "past_tracer"},
      {"RuntimeError: Cannot access data pointer of Tensor", "custom_op"},
      {"NotImplementedError: No operator found for `memory_efficient_attention_forward`",
       "xformers"},
      {"ModuleNotFoundError: No module named 'xformers'", "xformers"},
      {"FileNotFoundError: [Errno 2] No such file or directory: '/data/xformers/a'", "missing"},
      {"KeyError: 'LOCAL_RANK'", "one_process"},
      {"DistStoreError: Timed out after 31 seconds", "one_process"},
      {"ValueError: x", "function"}};
  for (const auto& [said, next] : rows)
    EXPECT_EQ(judged(traced(0, TraceEnd::script_failed), said).next(), next) << said;
}

TEST(TraceFailure, OfAModelSaysWhatStoppedItsProgram) {
  const formats::TraceEvents events = traced(0, TraceEnd::script_failed, [](TraceWriter& out) {
    out.note("model_stop_class", "NewModel", "x.py:1");
  });
  TraceFailure failure = *judged(events).failure;
  explain_model_failure(&events, failure);
  EXPECT_EQ(failure.kind, "model_stop_class");
  EXPECT_EQ(failure.detail, "NewModel");
  EXPECT_EQ(failure.next, "model_script");
  explain_model_failure(nullptr, failure);
  EXPECT_EQ(failure.kind, "model_no_torch");
}

TEST(TraceWarnings, OfSeveralLinesAreOne) {
  const formats::TraceEvents events = traced(1, TraceEnd::steps_seen, [](TraceWriter& out) {
    for (int line = 1; line <= 7; ++line)
      out.note("data_dependent", "item", "train.py:" + std::to_string(line));
    out.note("data_dependent", "other", "train.py:1");
    out.note("novelty", "x", "");
    out.note("error", "ValueError", "train.py:9");
  });
  const std::vector<Warning> got = trace_warnings(events);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].id, "data_dependent");
  EXPECT_EQ(got[0].source, "train.py:1, train.py:2, train.py:3, train.py:4, train.py:5, ...");
  EXPECT_EQ(got[1].id, "note");
  EXPECT_EQ(got[1].args.at("kind"), "novelty");
}

TEST(TraceWarnings, AreAddedOnce) {
  std::vector<Warning> list = {{"sizes_vary", {{"detail", "8"}}, ""}, {"assumed", {}, "a"}};
  add_warnings(list, {{"sizes_vary", {{"detail", "16"}}, ""}, {"assumed", {}, "b"}, list[1]});
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[2].source, "b");
}

}  // namespace trace_failure_test
}  // namespace cufit::fit
