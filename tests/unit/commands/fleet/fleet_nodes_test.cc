// SPDX-License-Identifier: Apache-2.0
#include "commands/fleet/fleet_nodes.h"
#include "commands/fleet/node_questions.h"

#include <gtest/gtest.h>

namespace cufit::commands {
namespace fleet_nodes_test {

// "name|text|why"
std::vector<std::string> told(const std::vector<NodeText>& nodes) {
  std::vector<std::string> out;
  for (const NodeText& node : nodes) out.push_back(node.name + "|" + node.text + "|" + node.why);
  return out;
}

TEST(FleetNodes, LabelledLinesOfSrun) {
  const std::string labelled =
      " 1: cufit-node gpu002\n"
      "0: cufit-node gpu001\n"
      "10: cufit-node gpu003\n"
      " 1: {\n"
      "0: {\"a\": 1}\n"
      " 1: }\n"
      "10: sh: 1: cufit: not found\n"
      "a line of srun's own\n";
  EXPECT_EQ(told(nodes_of_labelled(labelled, "srun: error: gpu009: task 3: Killed\n",
                                   {"gpu001", "gpu002", "gpu003", "gpu009", "gpu010"})),
            std::vector<std::string>(
                {"gpu001|{\"a\": 1}\n|", "gpu002|{\n}\n|", "gpu003||sh: 1: cufit: not found",
                 "gpu009||srun: error: gpu009: task 3: Killed", "gpu010||it did not answer"}));
}

TEST(FleetNodes, ATaskWithoutANameKeepsItsNumber) {
  EXPECT_EQ(told(nodes_of_labelled("7: {}\n", "", {})), std::vector<std::string>({"task 7|{}\n|"}));
  EXPECT_EQ(told(nodes_of_labelled("", "", {})), std::vector<std::string>());
}

host::FanOutAnswer answer_of(const std::string& out) {
  host::FanOutAnswer answer;
  answer.name = "a";
  answer.out = out;
  return answer;
}

TEST(FleetNodes, HalfAnAnswerIsNone) {
  EXPECT_EQ(text_of(answer_of("{}\n"), 2).text, "{}\n");
  host::FanOutAnswer late = answer_of("{\"a\":");
  late.timed_out = true;
  EXPECT_EQ(text_of(late, 2).why, "no answer within 2 s");
  EXPECT_EQ(text_of(late, 2).text, "");
  late.out += " 1}\n";  // all of it, and then the shell hung
  EXPECT_EQ(text_of(late, 2).why, "");
  host::FanOutAnswer longer = answer_of("{}");
  longer.too_long = true;
  EXPECT_EQ(text_of(longer, 2).why, "it said more than 8 MiB");
}

TEST(FleetNodes, HalfAnAnswerOfSrunIsNone) {
  host::FanOutAnswer late = answer_of(
      "0: cufit-node a\n0: {\n0: }\n1: cufit-node b\n1: {\n1: \"x\":\n"
      "2: cufit-node c\n2: sh: no\n");
  EXPECT_TRUE(contains(nodes_of_srun(late, {}, 2)[1].text, "x"));  // it ended by itself
  late.timed_out = true;
  EXPECT_EQ(told(nodes_of_srun(late, {"d"}, 2)),
            std::vector<std::string>({"a|{\n}\n|", "b||no answer within 2 s", "c||sh: no",
                                      "d||it did not answer"}));
}

// Two tasks of srun on one node, a host that was named twice.
TEST(FleetNodes, ANodeIsThereOnce) {
  EXPECT_EQ(
      told(one_of_each({{"a", "", "silent"}, {"b", "{}", ""}, {"a", "{1}", ""}, {"a", "{2}", ""}})),
      std::vector<std::string>({"a|{1}|", "b|{}|"}));
}

TEST(FleetNodes, OfANodesPodsTheNewestCounts) {
  const auto pod = [](const std::string& name, const std::string& node, const std::string& made) {
    return "{\"metadata\": {\"name\": \"" + name + "\", \"creationTimestamp\": \"" + made +
           "\"}, \"spec\": {\"nodeName\": \"" + node + "\"}}";
  };
  const Result<std::vector<FleetPod>> pods = pods_of(
      "{\"items\": [" + pod("old", "a", "2026-11-01T10:00:00Z") + "," +
      pod("new", "a", "2026-11-29T09:00:00Z") + "," + pod("mid", "a", "2026-11-02T10:00:00Z") +
      "," + pod("x", "", "") + "," + pod("y", "", "") + "]}");
  ASSERT_TRUE(pods);
  std::vector<std::string> names;
  for (const FleetPod& one : *pods) names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"new", "x", "y"}));
}

}  // namespace fleet_nodes_test
}  // namespace cufit::commands
