// SPDX-License-Identifier: Apache-2.0
// The bounds of single rules, on runs made for them: which share of the memory makes a cause.
#include "memory/analysis/cause_rules.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <utility>

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
  // Frames innermost first, "file:function"; one block of `mib` in `pool`, freed at `freed`.
  uint32_t stack(std::initializer_list<std::pair<const char*, const char*>> from) {
    std::vector<uint32_t> frames;
    for (const auto& [file, function] : from)
      frames.push_back(snapshot_.stacks.intern_frame(
          {snapshot_.texts.intern(function), snapshot_.texts.intern(file), 18}));
    return snapshot_.stacks.intern(frames);
  }
  void holds_in_pool(uint64_t mib, uint16_t pool) {
    holds(mib, memory::k_no_stack, Category::private_pools);
    lifetimes_.rows.back().pool = pool;
  }
  void made(uint32_t event, uint64_t mib, uint32_t stack, uint32_t freed = k_never) {
    holds(mib, stack, Category::activations);
    lifetimes_.rows.back().alloc_event = event;
    lifetimes_.rows.back().free_requested = lifetimes_.rows.back().free_completed = freed;
  }
  void trained(uint32_t steps, uint32_t until) {
    for (uint32_t i = 0; i < steps; ++i) steps_.begins.push_back(until * i / steps);
    steps_.begins.push_back(until);
    steps_.finished = steps;
    steps_.known_by = StepsKnownBy::frames;
    lifetimes_.work_end = k_oom_event;
    history_.highest_before_bytes = history_.usual_peak_bytes = 100 * k_mib;
  }
  memory::VerifiedRecording& verified() { return verified_; }
  Lifetime& last() { return lifetimes_.rows.back(); }

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

// A run of 1000 MiB of which 900 are private pools; the limit was all of it.
struct PooledRun {
  DeadRun run;

  OomCase died(uint64_t live) const {
    OomCase facts = run.died(1000, 20, memory::k_no_stack);
    facts.oom->tried = 20 * k_mib;
    facts.at.reserved_bytes = 1000 * k_mib;
    facts.at.allocated_bytes = 100 * k_mib + live * k_mib;
    facts.at.private_reserved_bytes = 900 * k_mib;
    facts.at.private_allocated_bytes = live * k_mib;
    facts.held[static_cast<size_t>(Category::private_pools)] = live * k_mib;
    facts.limits = Limits{1000 * k_mib, 1019 * k_mib};
    facts.without_pools = Rescue{"", true, true};
    return facts;
  }
};

// What is in use inside the pools a run without graphs needs as well: the pools are no cause then,
// and the activations that lie in them are.
TEST(CudaGraphPool, IsWhatLiesIdleInIt) {
  struct Case {
    uint64_t live;
    std::initializer_list<uint16_t> pools;
    bool is_cause;
  };
  for (const Case& one : {Case{880, {1}, false}, Case{700, {1}, false}, Case{600, {1}, true},
                          Case{600, {1, 2, 3}, true}, Case{880, {1, 2, 3}, false}}) {
    PooledRun pooled;
    for (const uint16_t pool : one.pools)
      pooled.run.holds_in_pool(one.live / one.pools.size(), pool);
    pooled.run.trained(1, 50);
    const OomCase facts = pooled.died(one.live);
    EXPECT_EQ(cudagraph_pool(facts).has_value(), one.is_cause) << one.live;
    const std::optional<Cause> pass = activation_peak(facts);
    ASSERT_TRUE(pass) << one.live;
    const EvidenceItem& item = pass->evidence.back();
    EXPECT_EQ(item.id, one.pools.size() == 1 ? "pass_in_pools" : "pass_in_some_pools");
    EXPECT_EQ(item.numbers[0].value, one.live * k_mib);
    if (one.pools.size() > 1) {
      EXPECT_EQ(item.numbers[1].value, one.pools.size());
      EXPECT_EQ(item.numbers[2].value, one.live / one.pools.size() * k_mib);
    }
  }
}

// That the step helps the replay has to say, and it is certain only where it would help as well if
// the largest graph's whole pass were held beside all that is in use.
TEST(CudaGraphPool, IsWhatAReplayWithoutPoolsShows) {
  struct Case {
    std::optional<Rescue> replay;
    uint64_t passing;  // MiB of the second pool that its capture freed again
    const char* said;
  };
  for (const Case& one :
       {Case{{}, 100, ""}, Case{Rescue{"", false, true}, 100, "likely"},
        Case{Rescue{"", true, true}, 100, "certain"}, Case{Rescue{"", true, true}, 380, "certain"},
        Case{Rescue{"", true, true}, 381, "likely"}}) {
    PooledRun pooled;
    for (const uint16_t pool : {1, 2, 3}) pooled.run.holds_in_pool(160, pool);
    pooled.run.made(50, 300, memory::k_no_stack, 51);
    pooled.run.made(60, one.passing, memory::k_no_stack, 70);
    pooled.run.last().pool = 2;
    OomCase facts = pooled.died(500);
    facts.without_pools = one.replay;
    const std::optional<Cause> cause = cudagraph_pool(facts);
    EXPECT_EQ(cause ? to_string(cause->confidence) : "", std::string(one.said)) << one.passing;
  }
}

// A request in the one pool that there is finds the same holes in the default pool.
TEST(CudaGraphPool, IsNoneWhereItAsksItself) {
  for (const uint16_t asking : {0, 1}) {
    PooledRun pooled;
    pooled.run.holds_in_pool(500, 1);
    memory::Program program;
    memory::Op op;
    op.kind = memory::OpKind::failed;
    op.event = k_oom_event;
    op.pool = asking;
    program.ops.push_back(op);
    pooled.run.verified().program = std::make_shared<const memory::Program>(std::move(program));
    EXPECT_EQ(cudagraph_pool(pooled.died(500)).has_value(), asking == 0);
  }
}

// `logits.append(model(ids))` for 20 batches after two steps, of each pass nothing else stays.
struct Evaluation {
  DeadRun run;
  uint32_t logits, inside, cat;

  Evaluation(const char* function, bool graph, uint32_t batches = 20) {
    logits = run.stack({{"/x/torch/nn/functional.py", "linear"},
                        {"/x/site-packages/torch/nn/modules/module.py", "_call_impl"},
                        {"/y/train.py", function},
                        {"/y/train.py", "<module>"}});
    inside = run.stack({{"/y/model.py", "block"},
                        {"/x/site-packages/torch/nn/modules/module.py", "_call_impl"},
                        {"/y/train.py", function},
                        {"/y/train.py", "<module>"}});
    cat = run.stack({{"/y/train.py", function}, {"/y/train.py", "<module>"}});
    run.trained(2, 10);
    for (uint32_t i = 0; i < batches; ++i) {
      const uint32_t at = 11 + 4 * i;
      for (uint32_t j = 0; j < 3; ++j) run.made(at + j, 5, inside, graph ? k_never : at + 3);
      run.made(at + 3, 20, logits);
    }
  }
};

TEST(KeptOutputs, AreJoinedAtTheEnd) {
  Evaluation evaluation("evaluate", false);
  const OomCase facts = evaluation.run.died(900, 400, evaluation.cat);
  const std::optional<Cause> cause = kept_outputs(facts);
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->id, "tensors_kept");
  EXPECT_EQ(cause->confidence, Confidence::likely);
  ASSERT_EQ(cause->evidence.size(), 2u);
  EXPECT_EQ(cause->evidence[0].numbers[0].value, 20u);
  EXPECT_EQ(cause->evidence[0].numbers[1].value, 20 * k_mib);
  EXPECT_EQ(cause->evidence[0].numbers[2].value, 400 * k_mib);
  EXPECT_EQ(cause->evidence[0].numbers[3].text, "train.py:18 evaluate");
  EXPECT_EQ(cause->evidence[1].id, "outputs_joined");
  // It is no large sample of a step, and the first that is said.
  EXPECT_FALSE(oversized_input(facts));
  EXPECT_EQ(causes_of(facts)[0].id, "tensors_kept");
}

// The same blocks where it stops between two batches: a name says that it evaluates, and of a
// forward pass that is kept for training more stays than that.
TEST(KeptOutputs, ComeBatchByBatch) {
  EXPECT_TRUE(kept_outputs(Evaluation("validate", false).run.died(900, 5, memory::k_no_stack)));
  EXPECT_FALSE(kept_outputs(Evaluation("main", false).run.died(900, 5, memory::k_no_stack)));
  EXPECT_FALSE(kept_outputs(Evaluation("validate", true).run.died(900, 5, memory::k_no_stack)));
  EXPECT_FALSE(kept_outputs(Evaluation("generate", false).run.died(900, 5, memory::k_no_stack)));
  EXPECT_FALSE(kept_outputs(Evaluation("validate", false, 2).run.died(150, 5, memory::k_no_stack)));
  // An eighth of what was needed is no cause.
  EXPECT_FALSE(kept_outputs(Evaluation("validate", false).run.died(3200, 5, memory::k_no_stack)));
}

// A module joins what its branches made in training, too.
TEST(KeptOutputs, AreNotJoinedInsideOfAModule) {
  Evaluation evaluation("main", false);
  EXPECT_TRUE(kept_outputs(evaluation.run.died(900, 400, evaluation.cat)));
  EXPECT_FALSE(kept_outputs(evaluation.run.died(900, 400, evaluation.inside)));
}

}  // namespace cause_rules_test
}  // namespace cufit::analysis
