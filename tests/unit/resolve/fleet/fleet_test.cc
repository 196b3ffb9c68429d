// SPDX-License-Identifier: Apache-2.0
#include "resolve/fleet/fleet.h"

#include <gtest/gtest.h>

namespace cufit::resolve {
namespace fleet_test {

facts::Facts machine(const std::string& gpu, const std::string& driver,
                     const std::string& vbios = "96.00") {
  facts::Facts facts;
  facts.cufit_version = "0.1.0";
  facts.kernel.version = known<std::string>(driver, SourceKind::file, "x");
  for (uint32_t i = 0; i < 2; ++i) {
    facts::NvmlGpu one;
    one.index = i;
    one.name = known<std::string>(gpu, SourceKind::nvml, "x");
    one.vbios = known<std::string>(vbios, SourceKind::nvml, "x");
    facts.nvml.gpus.push_back(one);
  }
  return facts;
}

FleetNode node(const std::string& name, const facts::Facts& facts,
               const std::string& cufit = "0.1.0") {
  FleetNode out;
  out.name = name;
  out.cufit = cufit;
  out.fingerprint = fingerprint_of(facts, "");
  return out;
}

// "a,b: driver 1 (2); vbios x (y)"
std::vector<std::string> told(const FleetComparison& comparison) {
  std::vector<std::string> out;
  for (const NodeGroup& group : comparison.groups) {
    std::string text;
    for (const std::string& name : group.nodes) text += (text.empty() ? "" : ",") + name;
    text += ":";
    for (const NodeDifference& one : group.differs)
      text += " " + one.what + " " + one.value + " (" + one.majority + ")";
    out.push_back(text);
  }
  return out;
}

TEST(Fingerprint, SaysNothingOfOneMachineAlone) {
  facts::Facts a = machine("NVIDIA H100", "580.95.05"), b = a;
  b.nvml.gpus[0].uuid = known<std::string>("GPU-2", SourceKind::nvml, "x");
  b.nvml.gpus[0].serial = known<std::string>("17", SourceKind::nvml, "x");
  b.nvml.gpus[0].temperature_c = known(uint32_t{80}, SourceKind::nvml, "x");
  b.system.boot_id = known<std::string>("other", SourceKind::file, "x");
  EXPECT_EQ(fingerprint_of(a, "").id, fingerprint_of(b, "").id);
  EXPECT_NE(fingerprint_of(a, "").id, fingerprint_of(a, "cu130").id);
  b = a;
  b.nvml.gpus[1].vbios = known<std::string>("96.01", SourceKind::nvml, "x");
  EXPECT_NE(fingerprint_of(a, "").id, fingerprint_of(b, "").id);
}

TEST(Fleet, WhoDiffersFromTheMost) {
  const facts::Facts usual = machine("NVIDIA H100", "580.95.05");
  const std::vector<FleetNode> nodes = {node("c", usual), node("a", usual),
                                        node("b", machine("NVIDIA H100", "570.86.15", "96.01"))};
  EXPECT_EQ(
      told(compare_nodes(nodes, std::nullopt)),
      std::vector<std::string>({"a,c:", "b: driver 570.86.15 (580.95.05) vbios 96.01 (96.00)"}));
}

// The firmware of another kind of card is no drift; a driver that differs is.
TEST(Fleet, CardsAreComparedWithTheirOwnKind) {
  const facts::Facts h100 = machine("NVIDIA H100", "580.95.05", "96.00");
  const facts::Facts a100 = machine("NVIDIA A100", "580.95.05", "92.00");
  std::vector<FleetNode> nodes = {
      node("a", h100), node("b", h100), node("c", h100),
      node("d", a100), node("e", a100), node("f", machine("NVIDIA A100", "580.95.05", "92.01"))};
  const std::vector<std::string> all = told(compare_nodes(nodes, std::nullopt));
  EXPECT_EQ(all, std::vector<std::string>(
                     {"a,b,c:", "d,e: gpus 2 x NVIDIA A100 (2 x NVIDIA H100)",
                      "f: gpus 2 x NVIDIA A100 (2 x NVIDIA H100) vbios 92.01 (92.00)"}));
}

TEST(Fleet, ABaselineStandsInPlaceOfTheMost) {
  const std::vector<FleetNode> nodes = {node("a", machine("NVIDIA H100", "580.95.05")),
                                        node("b", machine("NVIDIA H100", "580.95.05"))};
  EXPECT_EQ(told(compare_nodes(nodes, fingerprint_of(machine("NVIDIA H100", "590.44"), ""))),
            std::vector<std::string>({"a,b: driver 580.95.05 (590.44)"}));
}

// Ten nodes whose GPU is gone are no model for three that are well.
TEST(Fleet, NodesThatAreNotUsableDoNotVote) {
  std::vector<FleetNode> nodes;
  for (int i = 0; i < 10; ++i) {
    nodes.push_back(node("bad" + std::to_string(i), machine("NVIDIA H100", "535.183.01")));
    nodes.back().verdict = "broken";
  }
  EXPECT_EQ(compare_nodes(nodes, {}).groups.front().differs.size(), 0u);
  nodes.push_back(node("good", machine("NVIDIA H100", "580.95.05")));
  nodes.back().verdict = "works";
  const FleetComparison compared = compare_nodes(nodes, {});
  EXPECT_EQ(compared.groups[0].differs.at(0).majority, "580.95.05");
  EXPECT_TRUE(compared.groups[1].differs.empty());
}

TEST(Fleet, OrderOfTheNodesChangesNothing) {
  std::vector<FleetNode> nodes = {node("a", machine("NVIDIA H100", "580.95.05")),
                                  node("b", machine("NVIDIA H100", "570.86.15")),
                                  node("c", machine("NVIDIA H100", "575.57.08"), "0.2.0")};
  const std::vector<std::string> before = told(compare_nodes(nodes, std::nullopt));
  std::reverse(nodes.begin(), nodes.end());
  const FleetComparison after = compare_nodes(nodes, std::nullopt);
  EXPECT_EQ(told(after), before);
  EXPECT_EQ(after.cufit, "0.1.0");
  EXPECT_EQ(after.other_cufit, std::vector<std::string>({"c"}));
}

}  // namespace fleet_test
}  // namespace cufit::resolve
