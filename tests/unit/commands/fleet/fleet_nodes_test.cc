// SPDX-License-Identifier: Apache-2.0
#include "commands/fleet/fleet_nodes.h"

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

}  // namespace fleet_nodes_test
}  // namespace cufit::commands
