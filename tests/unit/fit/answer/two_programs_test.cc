// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/two_programs.h"

#include <gtest/gtest.h>

#include "support/trace_writer.h"

namespace cufit::fit {
namespace two_programs_test {

using formats::StorageCategory;
using formats::TraceEvents;
using formats::TracePhase;
using test::TraceWriter;

struct Program {
  std::string name;  // the fact; empty: of an older tracer
  std::string weight_line = "train.py:3", step_line = "train.py:9";
  uint64_t weight = 4096;
  std::vector<std::pair<std::string, std::string>> facts;
};

TraceEvents trace_of(const Program& program, uint64_t batch = 8) {
  TraceWriter out(batch);
  if (!program.name.empty()) out.fact("program", program.name);
  for (const auto& [key, value] : program.facts) out.fact(key, value);
  const uint32_t weight =
      out.alloc(program.weight, out.site("to", TracePhase::setup, "", program.weight_line));
  out.category(weight, StorageCategory::parameter);
  out.alloc(batch * 512, out.site("mm", TracePhase::forward, "body", program.step_line));
  out.end();
  return out.read();
}

std::optional<TwoPrograms> apart(const Program& first, const Program& other) {
  const TraceEvents traces[] = {trace_of(first), trace_of(first, 16), trace_of(other, 32)};
  return two_programs(traces);
}

TEST(TwoPrograms, AreToldByTheScriptsName) {
  const std::optional<TwoPrograms> got = apart({"train.py"}, {"tune.py"});
  ASSERT_TRUE(got);
  EXPECT_EQ(got->other, 2u);
  EXPECT_EQ(got->name, "train.py");
  EXPECT_EQ(got->other_name, "tune.py");
  // Of another rank, too: one command starts them.
  Program rank{"tune.py"};
  rank.facts = {{"world_size", "2"}, {"rank", "1"}};
  EXPECT_TRUE(apart({"train.py"}, rank));
}

TEST(TwoPrograms, AreToldByTheirFilesWhereAnOlderTracerDidNotNameThem) {
  Program other;
  other.weight_line = "tune.py:3";
  other.step_line = "tune.py:9";
  const std::optional<TwoPrograms> got = apart({}, other);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->name, "train.py");
  EXPECT_EQ(got->other_name, "tune.py");
  other.facts = {{"world_size", "2"}, {"rank", "0"}};  // another number of ranks
  EXPECT_TRUE(apart({}, other));
  other.facts.clear();
  other.step_line = "src/train.py:9";  // started in another folder
  EXPECT_FALSE(apart({}, other));
}

TEST(TwoPrograms, OfOneNameAreToldByWeightsThatAreMadeElsewhere) {
  Program other{"train.py"};
  other.weight = 8192;
  other.weight_line = "train.py:5";
  const std::optional<TwoPrograms> got = apart({"train.py"}, other);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->name, "");
}

TEST(TwoPrograms, AreNotSeenInOneThatWasChangedOrRunsOtherwise) {
  EXPECT_FALSE(apart({"train.py"}, {"train.py"}));
  EXPECT_FALSE(apart({"train.py"}, {}));  // kept before the tracer told it
  Program changed{"train.py"};
  changed.weight_line = "train.py:5";  // a line more before it
  EXPECT_FALSE(apart({"train.py"}, changed));
  Program grown{"train.py"};
  grown.weight = 8192;  // it follows the batch size
  EXPECT_FALSE(apart({"train.py"}, grown));
  Program stage{"train.py"};
  stage.weight = 8192;
  stage.weight_line = "stages.py:5";
  stage.step_line = "stages.py:9";
  EXPECT_TRUE(apart({"train.py"}, stage));
  stage.facts = {{"world_size", "2"}, {"rank", "1"}};
  EXPECT_FALSE(apart({"train.py"}, stage));
  stage.facts = {{"variant", "fsdp"}};
  EXPECT_FALSE(apart({"train.py"}, stage));
}

}  // namespace two_programs_test
}  // namespace cufit::fit
