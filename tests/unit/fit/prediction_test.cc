// SPDX-License-Identifier: Apache-2.0
#include "fit/prediction.h"

#include <gtest/gtest.h>

#include "fit/search.h"
#include "unit/fit/fit_fixture.h"

namespace cufit::fit {
namespace prediction_test {

constexpr uint64_t k_cublas = 33554432;  // of each thread on compute capability 9.0

uint64_t sum(const Breakdown& at) {
  return at.weights + at.buffers + at.gradients + at.optimizer_state + at.inputs + at.activations +
         at.temporaries + at.workspaces + at.other;
}

TEST(Prediction, AddsUpAtThePeak) {
  const StepProgram program = aligned({small_program(2), small_program(4)}).value();
  // Of later steps: weights, optimizer state, input and activation, two workspaces, and either the
  // gradient or what the loss makes on its way.
  const auto allocated = [](uint64_t batch) {
    return (128 + 3 * batch + std::max<uint64_t>(64, 3 * batch)) * k_mib + 2 * k_cublas;
  };
  for (const uint64_t batch : {2u, 3u, 4u, 16u, 64u}) {
    const Prediction got = predict(program, batch, {}).value();
    EXPECT_EQ(got.peak_allocated, allocated(batch)) << batch;
    EXPECT_EQ(sum(got.breakdown), got.peak_allocated);
    EXPECT_GE(got.peak_reserved, got.peak_allocated);
    EXPECT_GE(got.peak_reserved_upper, got.peak_reserved);
    EXPECT_EQ(got.breakdown.weights, 64 * k_mib);
    EXPECT_EQ(got.breakdown.optimizer_state, 64 * k_mib);
    EXPECT_EQ(got.breakdown.inputs, batch * k_mib);
    EXPECT_EQ(got.breakdown.activations, 2 * batch * k_mib);
    EXPECT_EQ(got.breakdown.workspaces, 2 * k_cublas);
    EXPECT_TRUE(got.fits());
    EXPECT_EQ(got.traced, batch == 2 || batch == 4);
  }
}

// Of each step: 64 MiB that come and go, then 64 MiB more. `done`: events of the other stream are waited for before these, and
// not only at the step's end.
TraceWriter of_another_stream(bool waits, bool done) {
  TraceWriter out(8);
  const Sites s = write_sites(out);
  const uint32_t wait = out.site("waits_for_event", TracePhase::forward, "", ""),
                 over = out.site("events_done", TracePhase::forward, "", "");
  out.category(out.alloc(64 * k_mib, s.weight), StorageCategory::parameter);
  for (int i = 0; i < 3; ++i) {
    out.mark(TraceMark::step_begins);
    const uint32_t gathered = out.alloc(64 * k_mib, s.act);
    if (waits) out.call(wait, {0});
    out.free(gathered);
    if (waits && done) out.call(over, {0});
    const uint32_t next = out.alloc(64 * k_mib, s.loss);
    if (waits && !done) out.call(over, {1});
    out.free(next);
    out.mark(TraceMark::step_ends);
  }
  out.end();
  return out;
}

TEST(Prediction, MemoryThatAnotherStreamUsesIsTakenAgainOnceThatIsDone) {
  const auto peak = [](bool waits, bool done) {
    return predict(aligned({of_another_stream(waits, done)}).value(), 8, {}).value();
  };
  const Prediction plain = peak(false, false), waiting = peak(true, false), done = peak(true, true);
  EXPECT_EQ(plain.peak_reserved, 128 * k_mib);
  EXPECT_EQ(waiting.peak_reserved, 192 * k_mib);
  EXPECT_EQ(done.peak_reserved, plain.peak_reserved);
  EXPECT_EQ(waiting.peak_allocated, plain.peak_allocated);
}

// 64 MiB come and go on a stream, what is cached is given back, and 64 MiB are taken on the default stream.
TEST(Prediction, ACudaGraphKeepsItsPool) {
  const auto reserved = [](uint8_t stream) {
    TraceWriter out(8);
    const Sites s = write_sites(out);
    const uint32_t aside = out.site("relu", TracePhase::forward, "", "", stream),
                   empties = out.site("empty_cache", TracePhase::forward, "", "");
    out.category(out.alloc(64 * k_mib, s.weight), StorageCategory::parameter);
    for (int i = 0; i < 3; ++i) {
      out.mark(TraceMark::step_begins);
      out.free(out.alloc(64 * k_mib, aside));
      out.call(empties, {});
      out.free(out.alloc(64 * k_mib, s.act));
      out.call(empties, {});
      out.mark(TraceMark::step_ends);
    }
    out.end();
    return predict(aligned({out}).value(), 8, {}).value().peak_reserved;
  };
  EXPECT_EQ(reserved(0), 128 * k_mib);
  EXPECT_EQ(reserved(1), 128 * k_mib);
  EXPECT_EQ(reserved(formats::k_first_graph_pool), 192 * k_mib);
  EXPECT_EQ(reserved(formats::k_first_graph_pool + formats::k_graph_pools - 1), 192 * k_mib);
}

// Two graphs of 64 MiB, one after the other, and then 64 MiB of no graph.
TEST(Prediction, AReleasedPoolOfAGraphIsEmptied) {
  const auto reserved = [](bool released) {
    TraceWriter out(8);
    const Sites s = write_sites(out);
    const uint32_t graph =
        out.site("relu", TracePhase::forward, "", "", formats::k_first_graph_pool);
    const uint32_t releases = out.site("graph_pool_released", TracePhase::forward, "", ""),
                   empties = out.site("empty_cache", TracePhase::forward, "", "");
    out.category(out.alloc(64 * k_mib, s.weight), StorageCategory::parameter);
    for (int i = 0; i < 3; ++i) {
      out.mark(TraceMark::step_begins);
      const uint32_t kept = out.alloc(64 * k_mib, graph);
      if (released) out.call(releases, {formats::k_first_graph_pool});
      const uint32_t other = out.alloc(64 * k_mib, graph);
      out.free(kept);
      out.call(empties, {});
      out.free(out.alloc(64 * k_mib, s.act));
      out.call(empties, {});
      out.free(other);
      out.mark(TraceMark::step_ends);
    }
    out.end();
    return predict(aligned({out}).value(), 8, {}).value().peak_reserved;
  };
  EXPECT_EQ(reserved(false), 256 * k_mib);  // what was freed in the pool stays there
  // What was freed in the released one is gone.
  EXPECT_EQ(reserved(true), 192 * k_mib);
}

// cuBLAS has a workspace for each thread, and there for each stream.
TEST(Prediction, AStreamHasItsOwnWorkspace) {
  const auto workspaces = [](uint8_t stream) {
    TraceWriter out(8);
    const Sites s = write_sites(out);
    const uint32_t aside = out.site("matmul", TracePhase::forward, "", "", stream);
    for (int i = 0; i < 3; ++i) {
      out.mark(TraceMark::step_begins);
      for (const uint32_t site : {s.matmul, aside}) out.call(site, {32, 0, 1, 8, 1024, 1024});
      out.free(out.alloc(64 * k_mib, s.act));
      out.mark(TraceMark::step_ends);
    }
    out.end();
    return predict(aligned({out}).value(), 8, {}).value().breakdown.workspaces;
  };
  EXPECT_EQ(workspaces(0), k_cublas);
  EXPECT_EQ(workspaces(1), 2 * k_cublas);
}

// Later batches of other sizes come in an order that no trace has, and torch.compile leaves more.
TEST(Prediction, LeavesMoreRoomWhereLessIsKnown) {
  const StepProgram plain = aligned({small_program(64)}).value();
  const auto room = [](const StepProgram& program) {
    const Prediction got = predict(program, 64, {}).value();
    return got.peak_reserved_upper - got.peak_reserved;
  };
  const auto with = [&plain](std::string_view key, std::string_view value, bool note) {
    StepProgram out = plain;
    const auto number = static_cast<uint32_t>(out.texts.size());
    out.texts.insert(out.texts.end(), {std::string(key), std::string(value)});
    if (note) out.notes.push_back({number, number + 1, number + 1});
    if (!note) out.facts.push_back({number, number + 1});
    return out;
  };
  const StepProgram varying = with("sizes_vary", "64 x 100, 64 x 120", true);
  const StepProgram compiled = with("compiled", "1", false);
  const StepProgram not_compiled = with("compiled", "0", false);
  EXPECT_GE(room(varying), predict(plain, 64, {}).value().peak_reserved / 20);
  EXPECT_GT(room(varying), room(plain));
  EXPECT_GT(room(varying), room(compiled));
  EXPECT_EQ(room(not_compiled), room(plain));
}

TEST(Prediction, SaysWhenAndWhereThePeakIs) {
  const StepProgram program = aligned({small_program(2), small_program(4)}).value();
  const Prediction small = predict(program, 2, {}).value();
  EXPECT_EQ(small.peak.step, 2u);
  EXPECT_EQ(small.peak.phase, TracePhase::backward);
  EXPECT_EQ(small.peak.op, "mm");
  const Prediction large = predict(program, 64, {}).value();
  EXPECT_EQ(large.peak.phase, TracePhase::forward);
  EXPECT_EQ(large.peak.source, "train.py:11");
  ASSERT_EQ(large.activations_by_module.size(), 1u);
  EXPECT_EQ(large.activations_by_module[0].module, "body.1");
}

// A batch is copied on a stream of the loader's: what it leaves there is not for the model's.
TEST(Prediction, GivesABlockToTheStreamItIsOf) {
  const auto trace = [](uint64_t batch, uint8_t stream) {
    TraceWriter out(batch);
    const uint32_t loader = out.site("_to_copy", TracePhase::forward, "", "train.py:9", stream);
    const uint32_t model = out.site("relu", TracePhase::forward, "body.1", "train.py:10");
    for (int step = 0; step < 2; ++step) {
      out.mark(TraceMark::step_begins);
      for (const uint32_t site : {loader, model}) out.free(out.alloc(batch * 32 * k_mib, site));
      out.mark(TraceMark::step_ends);
    }
    out.end();
    return out;
  };
  const auto reserved = [&](uint8_t stream) {
    const StepProgram program = aligned({trace(2, stream), trace(4, stream)}).value();
    EXPECT_TRUE(program.differences.empty());
    const Prediction got = predict(program, 8, {}).value();
    EXPECT_EQ(got.peak_allocated, 256 * k_mib);
    return got.peak_reserved;
  };
  EXPECT_EQ(reserved(0), 256 * k_mib);
  EXPECT_EQ(reserved(1), 512 * k_mib);
  EXPECT_FALSE(aligned({trace(2, 0), trace(4, 1)}).value().differences.empty());
}

TEST(Prediction, RunsOutOfMemoryAtACapacity) {
  const StepProgram program = aligned({small_program(2), small_program(4)}).value();
  fit::Setup setup;
  setup.capacity = 400 * k_mib;
  EXPECT_TRUE(predict(program, 8, setup).value().fits());
  const Prediction got = predict(program, 256, setup).value();
  EXPECT_FALSE(got.fits());
  ASSERT_TRUE(got.oom);
  EXPECT_EQ(got.oom->moment.step, 1u);
  EXPECT_LE(got.peak_reserved, setup.capacity);
}

TEST(Prediction, WarnsOfABatchOfOne) {
  const StepProgram program = aligned({small_program(2), small_program(4)}).value();
  EXPECT_EQ(predict(program, 1, {}).value().warnings, std::vector<std::string>{"batch_one"});
  EXPECT_TRUE(predict(program, 2, {}).value().warnings.empty());
}

TEST(Prediction, SeesWhatEveryStepLeaves) {
  const auto growth = [](std::vector<uint64_t> left) {
    TraceWriter out(4);
    const Sites s = write_sites(out);
    for (const uint64_t bytes : left) {
      out.mark(TraceMark::step_begins);
      out.alloc(bytes, s.act);
      out.mark(TraceMark::step_ends);
    }
    out.end(formats::TraceEnd::steps_seen);
    return predict(aligned({out}).value(), 4, {}).value().growth_per_step;
  };
  EXPECT_EQ(growth({9 * k_mib, 3 * k_mib, 3 * k_mib}), 3 * k_mib);  // the first has other reasons
  EXPECT_EQ(growth({3 * k_mib, 3 * k_mib}), 0u);
  EXPECT_EQ(growth({3 * k_mib, 3 * k_mib, 9 * k_mib}), 0u);
  EXPECT_EQ(growth({3 * k_mib, k_mib / 2, k_mib / 2}), 0u);
}

TEST(Prediction, ExtrapolatesNothingFromOneTrace) {
  const StepProgram program = aligned({small_program(4)}).value();
  EXPECT_TRUE(predict(program, 4, {}));
  EXPECT_FALSE(predict(program, 5, {}));
}

TEST(Prediction, SaysNothingOfAProgramThatEndedBeforeAStepDid) {
  TraceWriter out(4);
  const Sites s = write_sites(out);
  out.mark(TraceMark::step_begins);
  out.alloc(4 * k_mib, s.act);
  out.end(formats::TraceEnd::script_failed);
  EXPECT_FALSE(predict(aligned({out}).value(), 4, {}));
}

TEST(Search, FindsTheLargestBatchThatFits) {
  const StepProgram program = aligned({small_program(2), small_program(4)}).value();
  fit::Setup setup;
  setup.capacity = 1024 * k_mib;
  const LargestBatch got = largest_batch(program, setup);
  EXPECT_GT(got.batch, 64u);
  EXPECT_TRUE(predict(program, got.batch, setup).value().fits());
  EXPECT_FALSE(predict(program, got.batch + 1, setup).value().fits());
  EXPECT_FALSE(got.unbounded);
  setup.capacity = 100 * k_mib;
  EXPECT_EQ(largest_batch(program, setup).batch, 0u);
}

// The number that people buy cards by: at every capacity it fits, and one more does not. (A larger
// batch may fit where a smaller one does not: its blocks are others, and so is what is cached.)
TEST(Search, OneMoreThanTheLargestBatchDoesNotFit) {
  const StepProgram program = aligned({small_program(2), small_program(4)}).value();
  for (uint64_t capacity = 350; capacity <= 650; capacity += 20) {
    fit::Setup setup;
    setup.capacity = capacity * k_mib;
    const LargestBatch got = largest_batch(program, setup);
    ASSERT_GT(got.batch, 1u) << capacity;
    EXPECT_TRUE(predict(program, got.batch, setup).value().fits()) << capacity;
    EXPECT_FALSE(predict(program, got.batch + 1, setup).value().fits()) << capacity;
    EXPECT_FALSE(got.unbounded);
    EXPECT_FALSE(got.only_traced);
  }
}

TEST(Search, StopsWhereItWasToldTo) {
  const StepProgram program = aligned({small_program(2), small_program(4)}).value();
  for (const uint64_t highest : {4u, 7u, 64u}) {
    const LargestBatch got = largest_batch(program, {}, highest);
    EXPECT_EQ(got.batch, highest);
    EXPECT_TRUE(got.unbounded);
  }
}

TEST(Search, OneTraceAnswersForItsOwnBatchAlone) {
  const StepProgram program = aligned({small_program(4)}).value();
  const LargestBatch got = largest_batch(program, {});
  EXPECT_EQ(got.batch, 4u);
  EXPECT_TRUE(got.only_traced);
  EXPECT_TRUE(got.unbounded);
  fit::Setup setup;
  setup.capacity = 100 * k_mib;
  EXPECT_EQ(largest_batch(program, setup).batch, 0u);
}

}  // namespace prediction_test
}  // namespace cufit::fit
