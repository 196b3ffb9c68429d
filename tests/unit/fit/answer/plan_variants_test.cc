// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/plan_variants.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "unit/fit/fit_fixture.h"

namespace cufit::fit {
namespace plan_variants_test {

constexpr ComputeCapability k_ampere{8, 6}, k_turing{7, 5};

using Facts = std::vector<std::pair<const char*, const char*>>;

formats::TraceEvents told(const Facts& facts, uint64_t state_mib = 64) {
  TraceWriter out(8);
  const Sites sites = write_sites(out);
  out.alloc(64 * k_mib, sites.weight);
  out.category(out.alloc(state_mib * k_mib, sites.state), StorageCategory::optimizer_state);
  for (const auto& [key, value] : facts) out.fact(key, value);
  out.end();
  return out.read();
}

std::string worth(const formats::TraceEvents& events, const ComputeCapability& cc = k_ampere) {
  std::vector<std::string> out;
  for (const std::vector<std::string>& switches : variants_worth(events, cc))
    out.push_back(join(switches, "+"));
  return join(out, " ");
}

TEST(PlanVariants, AreWhatTheProgramDoesNotDoAlready) {
  Facts facts = {{"micro_batches", "1"}, {"precision", "float32"}, {"checkpointing", "blocks"}};
  EXPECT_EQ(worth(told(facts)), "bf16 checkpointing bf16+checkpointing");
  EXPECT_EQ(worth(told(facts), k_turing), "fp16 checkpointing fp16+checkpointing");
  facts.emplace_back("autocast", "bfloat16");
  EXPECT_EQ(worth(told(facts)), "checkpointing");
  facts.emplace_back("checkpointing", "on");
  EXPECT_EQ(worth(told(facts)), "");
}

TEST(PlanVariants, ChangeAnOptimizerThatMatters) {
  const Facts facts = {{"micro_batches", "1"},
                       {"precision", "float32"},
                       {"optimizer_form", "foreach"},
                       {"optimizer_can", "foreach_off 8bit"}};
  EXPECT_EQ(worth(told(facts)), "foreach_off bf16+foreach_off bf16+8bit");
  EXPECT_EQ(worth(told(facts, 1)), "bf16");  // its states are a small share
}

TEST(PlanVariants, DealOutWhatDistributedDataParallelRuns) {
  Facts facts = {{"micro_batches", "1"},
                 {"precision", "float32"},
                 {"autocast", "bfloat16"},
                 {"world_size", "8"},
                 {"node_size", "8"}};
  EXPECT_EQ(worth(told(facts)), "");
  facts.emplace_back("data_parallel", "ddp");
  EXPECT_EQ(worth(told(facts)), "zero1 fsdp:no-reshard fsdp fsdp+offload");
  facts.emplace_back("tp_can", "2 4");
  facts.emplace_back("checkpointing", "blocks");
  facts[4].second = "4";
  EXPECT_EQ(worth(told(facts)),
            "checkpointing zero1 fsdp:no-reshard fsdp fsdp+checkpointing "
            "fsdp+checkpointing+offload hsdp:4 tp:2 tp:4");
  facts[3].second = "1";
  EXPECT_EQ(worth(told(facts)), "checkpointing");
}

TEST(PlanVariants, TellTheTracerInWhichTypeToGather) {
  const Facts facts = {{"autocast", "bfloat16"}, {"data_parallel", "ddp"}};
  EXPECT_EQ(variant_words({"fsdp"}, told(facts)), "plan,fsdp,cast_bf16");
  EXPECT_EQ(variant_words({"fsdp", "bf16"}, told(facts)), "plan,fsdp,bf16");
  EXPECT_EQ(variant_words({"fused"}, told({{"autocast", "bfloat16"}})), "plan,fused");
}

TEST(PlanVariants, OfATraceThatEndedTooEarlyAreNone) {
  EXPECT_EQ(worth(told({{"precision", "float32"}})), "");
}

}  // namespace plan_variants_test
}  // namespace cufit::fit
