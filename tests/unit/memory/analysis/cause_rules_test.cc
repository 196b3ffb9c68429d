// SPDX-License-Identifier: Apache-2.0
// The bounds of single rules, on runs made for them: which share of the memory makes a cause.
#include "memory/analysis/cause_rules.h"

#include <gtest/gtest.h>

#include "knowledge/knowledge.h"

namespace cufit::analysis {
namespace cause_rules_test {

constexpr uint64_t k_mib = 1u << 20;
constexpr uint32_t k_oom_event = 100;

// A run that died at event 100. Stacks are named by their innermost function, inside a module.
class DeadRun {
 public:
  uint32_t stack(const char* file, const char* function) {
    const auto frame = [this](const char* name, const char* path) {
      return snapshot_.stacks.intern_frame(
          {snapshot_.texts.intern(name), snapshot_.texts.intern(path), 1});
    };
    const uint32_t frames[] = {frame(function, file),
                               frame("_call_impl", "/x/torch/nn/modules/module.py")};
    return snapshot_.stacks.intern(frames);
  }
  void holds(uint64_t mib, uint32_t stack, Category category = Category::unknown) {
    categories_.push_back(category);
    Lifetime row;
    row.requested_bytes = row.block_bytes = mib * k_mib;
    row.alloc_event = static_cast<uint32_t>(lifetimes_.rows.size());
    row.stack = stack;
    lifetimes_.rows.push_back(row);
  }
  // `needed`: what would have been allocated with the request of `asked`.
  OomCase died(uint64_t needed, uint64_t asked, uint32_t stack) const {
    OomCase facts{snapshot_, verified_, lifetimes_, steps_, categories_, history_};
    facts.oom.emplace();
    facts.oom->event = k_oom_event;
    facts.oom->rounded = asked * k_mib;
    facts.oom_stack = stack;
    facts.at.allocated_bytes = (needed - asked) * k_mib;
    return facts;
  }
  memory::VerifiedRecording& verified() { return verified_; }

 private:
  memory::Snapshot snapshot_{.traces = {{}}};
  memory::VerifiedRecording verified_;
  Lifetimes lifetimes_;
  Steps steps_;
  std::vector<Category> categories_;
  History history_;
};

// Of 1000 MiB that were needed, 300 in attention are a cause and 299 are none.
TEST(AttentionQuadratic, NeedsThreeTenthsOfTheMemory) {
  for (const uint64_t scores : {250u, 299u, 300u, 400u}) {
    DeadRun run;
    const uint32_t attention = run.stack("/x/model.py", "self_attention");
    run.holds(100, run.stack("/x/torch/nn/modules/linear.py", "forward"));
    run.holds(scores, attention);
    const std::optional<Cause> cause = attention_quadratic(run.died(1000, 10, memory::k_no_stack));
    EXPECT_EQ(cause.has_value(), scores >= 300) << scores;
    if (!cause) continue;
    EXPECT_EQ(cause->id, "attention_quadratic");
    EXPECT_EQ(cause->evidence[0].numbers[0].value, scores * k_mib);
    EXPECT_EQ(cause->evidence[0].numbers[2].value, 100 * k_mib);
  }
}

// The request that failed counts like what lives.
TEST(AttentionQuadratic, CountsTheRequestThatFailed) {
  for (const uint64_t asked : {299u, 300u}) {
    DeadRun run;
    const uint32_t attention = run.stack("/x/attention.py", "forward");
    run.holds(100, run.stack("/x/torch/nn/modules/linear.py", "forward"));
    EXPECT_EQ(attention_quadratic(run.died(1000, asked, attention)).has_value(), asked == 300);
    EXPECT_FALSE(attention_quadratic(run.died(1000, asked, memory::k_no_stack)));
  }
}

// Fused attention makes nothing that is larger than its input: from twice the largest tensor
// elsewhere on it is the scores.
TEST(AttentionQuadratic, TensorsAreTwiceAsLargeAsThoseElsewhere) {
  for (const uint64_t elsewhere : {200u, 201u}) {
    DeadRun run;
    const uint32_t attention = run.stack("/x/model.py", "attn");
    run.holds(elsewhere, run.stack("/x/torch/nn/modules/linear.py", "forward"));
    run.holds(400, attention);
    EXPECT_EQ(attention_quadratic(run.died(1000, 10, memory::k_no_stack)).has_value(),
              elsewhere == 200);
  }
  DeadRun alone;  // with nothing to compare with
  alone.holds(400, alone.stack("/x/model.py", "attention"));
  EXPECT_FALSE(attention_quadratic(alone.died(1000, 10, memory::k_no_stack)));
}

// The card gave 20 GiB earlier in the run: a tenth less at the end is another process's.
TEST(OtherProcess, IsWhatTookATenthOfTheCard) {
  constexpr uint64_t k_gib = 1u << 30;
  for (const uint64_t mine : {18 * k_gib - 1, 18 * k_gib}) {
    DeadRun run;
    run.verified().peak_reserved = 20 * k_gib;
    OomCase facts = run.died(100, 100, memory::k_no_stack);
    facts.oom->event = 0;
    facts.oom->tried = 2 * k_gib;
    facts.limits.emplace();
    facts.device_free = k_gib;
    facts.at.reserved_bytes = mine - k_gib;
    EXPECT_EQ(other_process(facts).has_value(), mine < 18 * k_gib) << mine;
    facts.device_free = 2 * k_gib;  // then the card was not full
    facts.at.reserved_bytes = mine - 2 * k_gib;
    EXPECT_FALSE(other_process(facts)) << mine;
  }
}

// The workspace is that of compute capability 9.0, whose cards have more than 40 GiB.
TEST(OtherProcess, MayHaveTheRestOfALargeCard) {
  constexpr uint64_t k_gib = 1u << 30;
  const uint64_t large =
      static_cast<uint64_t>(knowledge::Knowledge::builtin().find_cublas_workspace({9, 0})->bytes);
  for (const uint64_t workspace : {large / k_mib, large / k_mib / 4}) {
    for (const uint64_t mine : {40 * k_gib, 75 * k_gib}) {
      DeadRun run;
      run.verified().peak_reserved = mine;
      run.holds(workspace, memory::k_no_stack, Category::workspace);
      OomCase facts = run.died(100, 100, memory::k_no_stack);
      facts.oom->event = 0;
      facts.oom->tried = 2 * k_gib;
      facts.limits.emplace();
      facts.device_free = k_gib;
      facts.at.reserved_bytes = mine - k_gib;
      EXPECT_EQ(other_process_maybe(facts).has_value(),
                workspace * k_mib == large && mine == 40 * k_gib)
          << workspace << " " << mine;
    }
  }
}

TEST(GpuQuotaLimit, IsMetWhereTheCardHadRoomForTheRequest) {
  for (const uint64_t free : {99u, 100u}) {
    DeadRun run;
    OomCase facts = run.died(100, 100, memory::k_no_stack);
    facts.oom->tried = 100 * k_mib;
    facts.device_free = free * k_mib;
    EXPECT_EQ(gpu_quota_limit(facts).has_value(), free == 100);
  }
}

}  // namespace cause_rules_test
}  // namespace cufit::analysis
