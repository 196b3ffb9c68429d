// SPDX-License-Identifier: Apache-2.0
// A node as the scheduler sees it: from a recording of the machine (labels as NVIDIA's GPU Feature
// Discovery would write them), from a Node object of the cluster, or from both. What neither tells
// is not known, and nothing is concluded from it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/system/kubernetes_objects.h"
#include "resolve/wheel/target.h"

namespace cufit::resolve {

struct ClusterNode {
  std::string name, source;      // "gpu-7"; the file that it was read from
  std::optional<Target> target;  // of a recording
  // Of Node objects one value each; of recordings those that discovery may write, by the sharing
  // and MIG strategy of the cluster.
  std::map<std::string, std::vector<std::string>> labels;
  bool all_labels = false;  // a label that is not there does not exist
  std::optional<std::vector<formats::Taint>> taints;
  // "nvidia.com/gpu": how many; of a recording those that its GPUs give without sharing.
  std::map<std::string, uint64_t> resources;
  bool all_resources = false;              // of a Node object: nothing else is offered
  bool is_divided = false;                 // a GPU of a recording is divided by MIG
  std::map<std::string, double> capacity;  // "cpu", "memory" of a Node object
  uint64_t gpu_memory_bytes = 0;           // the largest GPU's; 0 = not known
};

ClusterNode node_of_recording(const facts::Facts& facts, const std::string& name,
                              const std::string& source, const knowledge::Knowledge& knowledge);
ClusterNode node_of_object(const formats::ManifestNode& node, const std::string& source);

// Puts nodes of equal name together: what the Node object says goes before the recording.
std::vector<ClusterNode> merged_nodes(std::vector<ClusterNode> nodes);

// "NVIDIA A100-SXM4-80GB" as a label's value: "NVIDIA-A100-SXM4-80GB".
std::string product_label(const std::string& name);

enum class LabelHolds { yes, no, unknown };
LabelHolds holds(const formats::NodeRequirement& requirement, const ClusterNode& node);
// The first requirement that the node is known not to meet; nullptr = none. Of affinity terms the
// one that comes nearest.
const formats::NodeRequirement* unmet_requirement(const formats::ManifestPod& pod,
                                                  const ClusterNode& node);
// The first taint of that kind that keeps the pod away; nullptr = none, or taints are not known.
const formats::Taint* untolerated(
    const formats::ManifestPod& pod, const ClusterNode& node,
    bool (*which)(const formats::Taint&) = [](const formats::Taint&) { return true; });

}  // namespace cufit::resolve
