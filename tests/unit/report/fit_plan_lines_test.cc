// SPDX-License-Identifier: Apache-2.0
#include "report/terminal/fit_plan_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/format.h"
#include "report/terminal/python_names.h"
#include "unit/fit/fit_fixture.h"

namespace cufit::report {
namespace fit_plan_lines_test {

using Facts = std::vector<std::pair<const char*, const char*>>;

// The lines of one switch that deals a program of DistributedDataParallel out.
PlanLines lines(const char* change, const Facts& facts) {
  const auto at = [&](uint64_t batch) {
    fit::TraceWriter out(batch);
    out.alloc(fit::k_mib, fit::write_sites(out).weight);
    for (const auto& [key, value] :
         Facts{{"data_parallel_at", "train.py:16"}, {"optimizer_at", "train.py:15"}})
      out.fact(key, value);
    const auto given = [&](std::string_view key) {
      return std::any_of(facts.begin(), facts.end(),
                         [&](const auto& fact) { return fact.first == key; });
    };
    if (!given("blocks_at")) out.fact("blocks_at", "module.encoder module.decoder");
    if (!given("optimizer")) out.fact("optimizer", "AdamW");
    for (const auto& [key, value] : facts) out.fact(key, value);
    out.end();
    return out;
  };
  fit::PlansAnswer plans;
  plans.programs.resize(2);
  plans.programs[0].steps = fit::aligned({at(2), at(4)}).value();
  plans.programs[1].switches = {change};
  plans.plans.plans.resize(2);
  plans.plans.plans[1].program = 1;
  return plan_lines(plans, plans.plans.plans[1], "").at(0);
}

std::string text(const PlanLines& of) { return join(of.lines, "\n"); }

TEST(FitPlanLines, WrapTheBlocksAndThenTheModel) {
  const PlanLines fsdp = lines("fsdp", {{"autocast", "bfloat16"}});
  EXPECT_EQ(fsdp.at, "train.py:16");
  EXPECT_TRUE(contains(text(fsdp), "[*model.encoder, *model.decoder]"));
  EXPECT_TRUE(contains(text(fsdp), "param_dtype=torch.bfloat16"));
  EXPECT_FALSE(contains(text(lines("fsdp", {})), "MixedPrecisionPolicy"));
  EXPECT_TRUE(contains(text(lines("fsdp:no-reshard", {})), "reshard_after_forward=False"));
  EXPECT_TRUE(contains(text(lines("hsdp:8", {})), "get_world_size() // 8, 8)"));
  EXPECT_EQ(lines("zero1", {}).at, "train.py:15");
}

// What a program with groups runs word for word (tests/tracer/sharding_test.py).
TEST(FitPlanLines, OfZero1KeepGroups) {
  std::ifstream in(CUFIT_SOURCE_DIR "/tests/tracer/programs/zero1_lines.py");
  const std::string program{std::istreambuf_iterator<char>(in), {}};
  const PlanLines zero1 = lines("zero1", {});
  ASSERT_EQ(zero1.lines.size(), 2u);
  for (const std::string& line : zero1.lines)
    EXPECT_TRUE(contains(program, "    " + line.substr(0, line.find("  #")) + "\n")) << line;
}

// "model.1" is no Python, and in the place of DistributedDataParallel there is no `module`.
TEST(FitPlanLines, NameModulesSoThatPythonTakesThem) {
  const auto blocks = [](const char* change, const char* key, const char* at) {
    return text(lines(change, {{key, at}, {"checkpointing", "blocks"}}));
  };
  EXPECT_TRUE(contains(blocks("fsdp", "blocks_at", "module.1 module.a.2.b"),
                       R"([*model.get_submodule("1"), *model.get_submodule("a.2.b")])"));
  EXPECT_TRUE(contains(blocks("fsdp", "blocks_at", "module"), "[*model]:"));
  EXPECT_TRUE(contains(blocks("fsdp", "blocks_at", "in.layers"),
                       R"([*model.get_submodule("in.layers")])"));
  EXPECT_TRUE(contains(blocks("fsdp", "blocks_at", "modules.a"), "[*model.modules.a]:"));
  EXPECT_TRUE(contains(blocks("checkpointing", "checkpointing_at", "module.layers"),
                       "[*model.module.layers]:"));
  EXPECT_TRUE(contains(blocks("checkpointing", "checkpointing_at", "module.0"),
                       R"([*model.get_submodule("module.0")])"));
}

TEST(FitPlanLines, ANameThatIsNoneBreaksOutOfNoString) {
  const std::string got = text(lines("fsdp", {{"blocks_at", R"(module.a");f("\)"}}));
  EXPECT_TRUE(contains(got, R"([*model.get_submodule("a\");f(\"\\")]:)")) << got;
  EXPECT_TRUE(is_python_name("überall_2"));
  for (const char* none : {"", "2", "a b", "a.b", "a\"", "a;b", "in", "lambda"})
    EXPECT_FALSE(is_python_name(none)) << none;
}

TEST(FitPlanLines, OfAFrameworkAreItsOwnFlags) {
  for (const auto& [framework, change, part] :
       {std::tuple("trainer", "fsdp",
                   "fsdp_config={\"version\": 2, \"reshard_after_forward\": True}"),
        std::tuple("trainer", "fsdp:no-reshard", "\"reshard_after_forward\": False"),
        std::tuple("trainer", "offload", "\"cpu_offload\": True"),
        std::tuple("trainer", "hsdp:8", "--parallelism_config_dp_replicate_size 2"),
        std::tuple("trainer", "zero1", "\"train_micro_batch_size_per_gpu\": \"auto\""),
        std::tuple("accelerate", "fsdp", "--fsdp_reshard_after_forward true"),
        std::tuple("accelerate", "offload", "TRANSFORMER_BASED_WRAP --fsdp_offload_params true"),
        std::tuple("accelerate", "hsdp:8",
                   "--parallelism_config_dp_replicate_size 2 --parallelism_config_dp_shard_size 8"),
        std::tuple("lightning", "fsdp:no-reshard", "SHARD_GRAD_OP\", auto_wrap_policy={Block})"),
        std::tuple("lightning", "hsdp:8", "device_mesh=(2, 8)")}) {
    const PlanLines got = lines(change, {{"framework", framework}, {"world_size", "16"}});
    EXPECT_TRUE(contains(text(got), part)) << text(got);
    EXPECT_EQ(got.at, "");  // the line is one of the framework
  }
}

TEST(FitPlanLines, OfAModelWithoutAScriptAreOptionsOfCufit) {
  const Facts own = {{"strategy", "ddp"}};
  EXPECT_EQ(text(lines("tp:2", own)), "--strategy tp:2");
  EXPECT_EQ(text(lines("checkpointing", own)), "--checkpointing on");
  EXPECT_EQ(text(lines("8bit", own)), "--optimizer adamw8bit");
}

}  // namespace fit_plan_lines_test
}  // namespace cufit::report
