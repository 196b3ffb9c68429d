// SPDX-License-Identifier: Apache-2.0
// What is said of programs whose trouble is known: tests/gpu/oom_workload.py and
// failure_workload.py say in their docstrings and names what is wrong with each.
#include "memory/analysis/diagnosis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "memory/analysis/allocated_walk.h"
#include "traces.h"

namespace cufit::analysis {
namespace diagnosis_test {

const Diagnosis& diagnosis(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Diagnosis>> kept;
  std::unique_ptr<Diagnosis>& one = kept[name];
  if (!one) {
    const TestTrace& trace = real_trace(name);
    one =
        std::make_unique<Diagnosis>(diagnose(trace.snapshot, trace.verified, std::nullopt).value());
  }
  return *one;
}

std::string root_cause(const std::string& name) {
  const Diagnosis& one = diagnosis(name);
  return one.causes.empty() ? "" : one.causes[0].id;
}

TEST(Diagnosis, NamesTheKnownCause) {
  for (const char* name : k_causes) {
    const std::string cause = std::string(name).substr(4);
    EXPECT_EQ(root_cause(name), cause == "survives" ? "" : cause) << name;
  }
  const struct {
    const char* name;
    const char* cause;
  } failures[] = {{"activation", "activation_peak"},
                  {"conv", "autotune_workspace"},
                  {"evalgrad", "eval_without_no_grad"},
                  {"first", ""},
                  {"frag", "fragmentation"},
                  {"gan", ""},
                  {"graph", "graph_retained"},
                  {"infer", ""},
                  {"kept", "tensors_kept"},
                  {"keptok", "tensors_kept"},
                  {"optstate", "optimizer_state"},
                  {"other", "other_process"},
                  {"oversized", "oversized_input"},
                  {"pending", "cross_stream_pending"},
                  {"quad", "attention_quadratic"},
                  {"weights", "weights_exceed_capacity"}};
  for (const auto& failure : failures)
    EXPECT_EQ(root_cause(std::string("failures/") + failure.name), failure.cause) << failure.name;
}

TEST(Diagnosis, NothingIsWrongWithRunsThatLived) {
  for (const char* name : {"accum", "amp", "amp-limit1.2", "cnn", "graphs", "lora", "streams",
                           "trace-gpt2-stacks", "trace-resnet", "trace-varlen", "varlen",
                           "varlen-expandable", "varlen-limit1.2", "varlen-ring"})
    EXPECT_EQ(root_cause(name), "") << name;
}

// Measured under the limits of runs.jsonl and limits-h200.jsonl: with expandable segments
// oom-varlen lived at 17.963 GiB, varlen and amp died at 1.02 times their peak.
TEST(Diagnosis, SaysWhatSurvivesAsMeasured) {
  const struct {
    const char* name;
    uint64_t limit;
    bool survives;
  } runs[] = {{"oom-varlen", 19287624318, true},
              {"varlen-limit1.02", 2043793551, false},
              {"amp-limit1.02", 2054500515, false}};
  for (const auto& run : runs) {
    const TestTrace& trace = real_trace(run.name);
    const Diagnosis one = diagnose(trace.snapshot, trace.verified, run.limit).value();
    ASSERT_TRUE(one.oom) << run.name;
    EXPECT_TRUE(one.oom->limits.given);
    EXPECT_EQ(one.advice[0].survives, std::optional<bool>(false)) << run.name;
    for (const Advice& advice : one.advice)
      if (advice.settings == "expandable_segments:True") {
        EXPECT_EQ(advice.survives, std::optional<bool>(run.survives)) << run.name;
        EXPECT_EQ(*advice.smallest_limit_bytes <= run.limit, run.survives) << run.name;
      }
  }
}

// Where the limit is known, a replay that gets past it says more than the size of the pass.
TEST(Diagnosis, AKnownLimitDecides) {
  const TestTrace& trace = real_trace("oom-varlen");
  EXPECT_EQ(root_cause("oom-varlen"), "activation_peak");
  const Diagnosis known = diagnose(trace.snapshot, trace.verified, 19287624318).value();
  ASSERT_FALSE(known.causes.empty());
  EXPECT_EQ(known.causes[0].id, "fragmentation");
  EXPECT_EQ(known.causes[0].confidence, Confidence::likely);
}

// At every moment the categories are what is allocated, and with what waits and what is cached they
// are what is reserved.
TEST(Diagnosis, CategoriesAddUpAtEveryMoment) {
  for (const char* name : k_all_traces) {
    const TestTrace& trace = real_trace(name);
    const Diagnosis& one = diagnosis(name);
    AllocatedWalk walk(*trace.verified.program, one.lifetimes);
    for (uint32_t event = 0; event < one.lifetimes.events;
         event += std::max(1u, one.lifetimes.events / 23)) {
      const uint64_t allocated = walk.to(event);
      const Footprint held = footprint_at(one.lifetimes, one.categories, event);
      const uint64_t sum = std::accumulate(held.begin(), held.end(), uint64_t{0});
      EXPECT_EQ(sum, allocated) << name << " event " << event;
      const Moment moment = moment_at(trace.verified, one.lifetimes, event);
      EXPECT_EQ(moment.allocated_bytes, allocated) << name << " event " << event;
      EXPECT_EQ(moment.inactive_split_bytes + moment.releasable_bytes, moment.cached_bytes())
          << name << " event " << event;
      EXPECT_GE(moment.cached_bytes(), moment.largest_free_bytes);
      const std::vector<Site> sites =
          sites_at(trace.snapshot, one.lifetimes, one.categories, event);
      uint64_t in_sites = 0;
      for (const Site& site : sites) in_sites += site.bytes;
      EXPECT_EQ(in_sites, allocated) << name << " event " << event;
    }
  }
}

TEST(Diagnosis, TheLastMomentIsTheSnapshot) {
  for (const char* name : k_all_traces) {
    const TestTrace& trace = real_trace(name);
    Moment end;
    for (const memory::Segment& segment : trace.snapshot.segments) {
      end.reserved_bytes += segment.total_size;
      end.allocated_bytes += segment.allocated_size;
      end.pending_bytes += segment.active_size - segment.allocated_size;
    }
    const Moment moment =
        moment_at(trace.verified, diagnosis(name).lifetimes, diagnosis(name).lifetimes.events - 1);
    EXPECT_EQ(moment.reserved_bytes, end.reserved_bytes) << name;
    EXPECT_EQ(moment.allocated_bytes, end.allocated_bytes) << name;
    EXPECT_EQ(moment.pending_bytes, end.pending_bytes) << name;
  }
}

TEST(Diagnosis, PeaksAsMeasured) {
  const struct {
    const char* name;
    uint64_t allocated, reserved;
  } runs[] = {{"cnn", 819127808, 2340421632},    {"varlen", 2003719168, 2629828608},
              {"accum", 1458681344, 1933574144}, {"amp", 2014216192, 2208301056},
              {"graphs", 720336896, 1308622848}, {"streams", 435404800, 983564288},
              {"lora", 704770560, 1333788672},   {"varlen-expandable", 1992492032, 2103443456}};
  for (const auto& run : runs) {
    EXPECT_EQ(diagnosis(run.name).peak.moment.allocated_bytes, run.allocated) << run.name;
    EXPECT_EQ(diagnosis(run.name).peak_reserved_bytes, run.reserved) << run.name;
  }
}

// Only blocks that another stream used ever wait.
TEST(Diagnosis, WhatWaited) {
  EXPECT_EQ(diagnosis("varlen").highest_pending_bytes, 0u);
  EXPECT_EQ(diagnosis("oom-varlen").highest_pending_bytes, 0u);
  EXPECT_GE(diagnosis("streams").highest_pending_bytes, 6291456u);  // one batch
  EXPECT_GE(diagnosis("failures/pending").highest_pending_bytes, uint64_t{500} << 20);
}

// Parameters as the program counted them: 24 layers of 2048 x 2048 with their biases, in float32.
TEST(Diagnosis, CategoriesOfAModelThatIsKnown) {
  constexpr uint64_t k_parameters = uint64_t{24} * (2048 * 2048 + 2048) * 4;
  const Footprint& held = diagnosis("failures/optstate").oom->instant.by_category;
  EXPECT_EQ(held[static_cast<size_t>(Category::parameters)], k_parameters);
  EXPECT_EQ(held[static_cast<size_t>(Category::gradients)], k_parameters);
  EXPECT_LT(held[static_cast<size_t>(Category::optimizer_state)], 2 * k_parameters);
  // 8 layers of 1024 x 1024, and AdamW's two moments of each.
  constexpr uint64_t k_small = uint64_t{8} * (1024 * 1024 + 1024) * 4;
  const Footprint& kept = diagnosis("failures/kept").oom->instant.by_category;
  EXPECT_EQ(kept[static_cast<size_t>(Category::parameters)], k_small);
  EXPECT_NEAR(static_cast<double>(kept[static_cast<size_t>(Category::optimizer_state)]),
              2.0 * k_small, 0.01 * k_small);
  // One output of 2048 x 1024 for each step but the two last.
  EXPECT_EQ(diagnosis("failures/kept").history.growth_per_step_bytes, uint64_t{2048} * 1024 * 4);
  EXPECT_EQ(diagnosis("failures/kept").history.growth_bytes, uint64_t{39} * 2048 * 1024 * 4);
}

// The ring lost the beginning of varlen: the model and its state are the same bytes all the same,
// up to blocks that happened to be given whole.
TEST(Diagnosis, ModelOfARingThatOverflowed) {
  const auto held = [](const char* name, Category category) {
    const Diagnosis& one = diagnosis(name);
    const Footprint bytes = footprint_at(one.lifetimes, one.categories, one.lifetimes.events - 1);
    return static_cast<double>(bytes[static_cast<size_t>(category)]);
  };
  for (const Category category : {Category::parameters, Category::optimizer_state})
    EXPECT_NEAR(held("varlen-ring", category) / held("varlen", category), 1, 0.02)
        << to_string(category);
  EXPECT_LT(held("varlen-ring", Category::unknown), 2 << 20);
}

// Without stacks the same is told from lifetimes alone, where it can be.
TEST(Diagnosis, WithoutStacks) {
  for (const char* name : {"oom/fragmentation", "oom/graph_retained", "oom/tensors_kept",
                           "oom/optimizer_state", "oom/cudagraph_pool", "oom/oversized_input"}) {
    memory::Snapshot snapshot = read_trace(name);
    for (size_t i = 0; i < snapshot.events.size(); ++i)
      snapshot.events[i].stack = memory::k_no_stack;
    const TestTrace bare = test_trace(std::move(snapshot));
    const Diagnosis one = diagnose(bare.snapshot, bare.verified, std::nullopt).value();
    ASSERT_FALSE(one.causes.empty()) << name;
    EXPECT_EQ(one.causes[0].id, std::string(name).substr(4)) << name;
  }
}

// That other settings or fewer pools help is what a replay shows.
TEST(Diagnosis, PoolsAreTheCauseWhereARunWithoutThemGetsFurther) {
  const Diagnosis& one = diagnosis("oom/cudagraph_pool");
  const auto without = std::find_if(one.advice.begin(), one.advice.end(), [](const Advice& advice) {
    return advice.remedy == Remedy::without_pools;
  });
  ASSERT_NE(without, one.advice.end());
  EXPECT_EQ(without->survives, std::optional<bool>(true));
  EXPECT_GT(without->saved_bytes, int64_t{1} << 29);
  EXPECT_LT(without->smallest_limit_bytes, one.limits->at_least);
  EXPECT_EQ(one.causes[0].confidence, Confidence::certain);
  EXPECT_EQ(one.causes[0].evidence[1].id, "without_pools");
  for (const Advice& advice : diagnosis("oom/fragmentation").advice)
    EXPECT_EQ(advice.remedy, Remedy::settings);
}

}  // namespace diagnosis_test
}  // namespace cufit::analysis
