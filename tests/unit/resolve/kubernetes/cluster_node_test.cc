// SPDX-License-Identifier: Apache-2.0
#include "resolve/kubernetes/cluster_node.h"

#include <gtest/gtest.h>

namespace cufit::resolve {
namespace cluster_node_test {

formats::NodeRequirement asks(const char* key, const char* op, std::vector<std::string> values) {
  return {key, op, std::move(values), 1};
}

TEST(ClusterNode, ProductAsDiscoveryWritesIt) {
  EXPECT_EQ(product_label("NVIDIA A100-SXM4-80GB"), "NVIDIA-A100-SXM4-80GB");
  EXPECT_EQ(product_label("NVIDIA  GeForce RTX 4060 (Ti)"), "NVIDIA-GeForce-RTX-4060-Ti");
}

TEST(ClusterNode, RequirementsOfALabel) {
  ClusterNode node;
  node.labels["n"] = {"580"};
  node.labels["product"] = {"A", "A-SHARED"};
  node.all_labels = true;
  EXPECT_EQ(holds(asks("n", "Gt", {"535"}), node), LabelHolds::yes);
  EXPECT_EQ(holds(asks("n", "Gt", {"580"}), node), LabelHolds::no);
  EXPECT_EQ(holds(asks("n", "Lt", {"581"}), node), LabelHolds::yes);
  EXPECT_EQ(holds(asks("n", "Gt", {"x"}), node), LabelHolds::no);
  EXPECT_EQ(holds(asks("product", "In", {"B", "A-SHARED"}), node), LabelHolds::yes);
  EXPECT_EQ(holds(asks("product", "In", {"B"}), node), LabelHolds::no);
  EXPECT_EQ(holds(asks("other", "Exists", {}), node), LabelHolds::no);
  EXPECT_EQ(holds(asks("other", "NotIn", {"a"}), node), LabelHolds::yes);
  // A recording does not know what others wrote.
  node.all_labels = false;
  EXPECT_EQ(holds(asks("other", "Exists", {}), node), LabelHolds::unknown);
}

TEST(ClusterNode, TaintsAndTolerations) {
  ClusterNode node;
  formats::ManifestPod pod;
  EXPECT_EQ(untolerated(pod, node), nullptr);  // not known
  node.taints = {{"soft", "", "PreferNoSchedule"}, {"gpu", "yes", "NoSchedule"}};
  ASSERT_NE(untolerated(pod, node), nullptr);
  EXPECT_EQ(untolerated(pod, node)->key, "gpu");
  for (const formats::Toleration& good :
       {formats::Toleration{"gpu", "Exists", "", ""}, formats::Toleration{"gpu", "", "yes", ""},
        formats::Toleration{"", "Exists", "", "NoSchedule"}}) {
    pod.tolerations = {good};
    EXPECT_EQ(untolerated(pod, node), nullptr);
  }
  for (const formats::Toleration& bad : {formats::Toleration{"gpu", "Equal", "no", ""},
                                         formats::Toleration{"gpu", "Exists", "", "NoExecute"},
                                         formats::Toleration{"other", "Exists", "", ""}}) {
    pod.tolerations = {bad};
    EXPECT_NE(untolerated(pod, node), nullptr);
  }
}

TEST(ClusterNode, AnObjectAndARecordingAreOneNode) {
  ClusterNode recording, object;
  recording.name = object.name = "a";
  recording.target = Target();
  recording.resources["nvidia.com/gpu"] = 4;
  object.all_resources = true;
  object.resources["nvidia.com/gpu"] = 8;
  for (const bool first : {true, false}) {
    const std::vector<ClusterNode> nodes =
        merged_nodes(first ? std::vector<ClusterNode>{recording, object}
                           : std::vector<ClusterNode>{object, recording});
    ASSERT_EQ(nodes.size(), 1u);
    EXPECT_TRUE(nodes[0].target.has_value());
    EXPECT_EQ(nodes[0].resources.at("nvidia.com/gpu"), 8u);
  }
}

}  // namespace cluster_node_test
}  // namespace cufit::resolve
