// SPDX-License-Identifier: Apache-2.0
#include "resolve/kubernetes/cluster_node.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/number.h"

namespace cufit::resolve {
namespace {

void add_label(ClusterNode& node, const std::string& key, const std::string& value) {
  node.labels["nvidia.com/" + key].push_back(value);
}

// Names and meaning: docs/gpu-feature-discovery/README.md of NVIDIA/k8s-device-plugin.
void add_driver_labels(const Target& target, ClusterNode& node) {
  if (target.driver) {
    const std::string full = driver_text(*target.driver);
    const std::vector<std::string_view> parts = split(full, '.');
    add_label(node, "cuda.driver-version.full", full);
    const std::pair<const char*, const char*> k_names[] = {
        {"cuda.driver-version.major", "cuda.driver.major"},
        {"cuda.driver-version.minor", "cuda.driver.minor"},
        {"cuda.driver-version.revision", "cuda.driver.rev"}};
    for (size_t i = 0; i < 3; ++i)
      for (const char* key : {k_names[i].first, k_names[i].second})
        if (i < parts.size()) add_label(node, key, std::string(parts[i]));
  }
  if (target.driver_cuda) {
    const std::string major = std::to_string(target.driver_cuda->part(0));
    const std::string minor = std::to_string(target.driver_cuda->part(1));
    add_label(node, "cuda.runtime-version.major", major);
    add_label(node, "cuda.runtime.major", major);
    add_label(node, "cuda.runtime-version.minor", minor);
    add_label(node, "cuda.runtime.minor", minor);
    add_label(node, "cuda.runtime-version.full", major + "." + minor);
  }
}

// Of a node with several kinds of GPUs discovery takes one for these labels: any may be it.
void add_gpu_labels(const Target& target, const facts::Facts& facts, ClusterNode& node) {
  for (const TargetGpu& gpu : target.gpus) {
    const std::string cc = gpu.cc.text();
    add_label(node, "gpu.compute.major", cc.substr(0, cc.find('.')));
    add_label(node, "gpu.compute.minor", cc.substr(cc.find('.') + 1));
  }
  uint64_t whole = 0;
  for (const facts::NvmlGpu& gpu : facts.nvml.gpus) {
    const bool divided = gpu.mig_current && *gpu.mig_current;
    node.is_divided = node.is_divided || divided;
    if (!divided) ++whole;
    if (gpu.memory_total_bytes) {
      node.gpu_memory_bytes = std::max(node.gpu_memory_bytes, *gpu.memory_total_bytes);
      // Of a divided GPU the label is an instance's by one strategy, the GPU's by the other.
      if (!divided) add_label(node, "gpu.memory", std::to_string(*gpu.memory_total_bytes >> 20));
    }
    if (gpu.name) {
      const std::string product = product_label(*gpu.name);
      add_label(node, "gpu.product", product);
      add_label(node, "gpu.product", product + "-SHARED");
      for (const facts::MigInstance& one : gpu.mig_instances)
        add_label(node, "gpu.product", product + "-MIG-" + one.name);
    }
    for (const facts::MigInstance& one : gpu.mig_instances) {
      std::string name = one.name;
      std::replace(name.begin(), name.end(), '+', '.');
      ++node.resources["nvidia.com/mig-" + name];
    }
  }
  // Without a driver the device plug-in finds no GPU to offer, nor where NVML counts none.
  const bool asked = facts.nvml.init_result && *facts.nvml.init_result == 0;
  if (facts.nvml.gpus.empty() && !asked && target.driver_state != Target::Driver::absent)
    for (const TargetGpu& gpu : target.gpus) whole += gpu.count;
  if (whole > 0) node.resources["nvidia.com/gpu"] = whole;
}

std::optional<int64_t> whole_number(const std::string& text) {
  const bool minus = starts_with(text, "-");
  const std::optional<uint64_t> read = parse_uint(std::string_view(text).substr(minus ? 1 : 0));
  if (!read || *read > (uint64_t{1} << 62)) return std::nullopt;
  return minus ? -static_cast<int64_t>(*read) : static_cast<int64_t>(*read);
}

bool value_holds(const formats::NodeRequirement& asked, const std::string& value) {
  const bool listed =
      std::find(asked.values.begin(), asked.values.end(), value) != asked.values.end();
  if (asked.op == "In") return listed;
  if (asked.op == "NotIn") return !listed;
  if (asked.op == "Exists") return true;
  if (asked.op == "DoesNotExist") return false;
  const std::optional<int64_t> have = whole_number(value);
  const std::optional<int64_t> than =
      asked.values.empty() ? std::nullopt : whole_number(asked.values[0]);
  if (!have || !than) return false;
  return asked.op == "Gt" ? *have > *than : *have < *than;
}

}  // namespace

std::string product_label(const std::string& name) {
  // As sanitise() of internal/lm/resource.go there.
  std::string kept, out;
  for (const char c : name)
    if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
        contains("-_. ", std::string_view(&c, 1)))
      kept += c;
  for (const std::string_view word : split(kept, ' '))
    if (!word.empty()) out += (out.empty() ? "" : "-") + std::string(word);
  return out;
}

ClusterNode node_of_recording(const facts::Facts& facts, const std::string& name,
                              const std::string& source, const knowledge::Knowledge& knowledge) {
  ClusterNode node;
  node.name = name;
  node.source = source;
  node.target = target_of(facts, knowledge, name);
  add_driver_labels(*node.target, node);
  add_gpu_labels(*node.target, facts, node);
  if (facts.system.architecture)
    node.labels["kubernetes.io/arch"] = {*facts.system.architecture == "aarch64" ? "arm64"
                                                                                 : "amd64"};
  node.labels["kubernetes.io/os"] = {"linux"};
  return node;
}

ClusterNode node_of_object(const formats::ManifestNode& object, const std::string& source) {
  ClusterNode node;
  node.name = object.name;
  node.source = source;
  for (const auto& [key, value] : object.labels) node.labels[key] = {value};
  node.all_labels = true;
  node.taints = object.taints;
  // The taints that Kubernetes sets for these, of a file that lacks them.
  const auto state = [&](bool holds, const char* key) {
    const bool there =
        std::any_of(object.taints.begin(), object.taints.end(),
                    [&](const auto& one) { return starts_with(one.key, "node.kubernetes.io/"); });
    if (holds && !there) node.taints->push_back({key, "", "NoSchedule"});
  };
  state(object.unschedulable, "node.kubernetes.io/unschedulable");
  state(object.not_ready, "node.kubernetes.io/not-ready");
  for (const char* name : {"cpu", "memory"})
    if (const auto found = object.allocatable.find(name); found != object.allocatable.end())
      if (const std::optional<double> value = formats::parse_quantity(found->second))
        node.capacity[name] = *value;
  for (const auto& [key, quantity] : object.allocatable)
    if (starts_with(key, "nvidia.com/"))
      if (const std::optional<double> count = formats::parse_quantity(quantity);
          count && *count >= 0 && *count < 1e6)
        node.resources[key] = static_cast<uint64_t>(*count);
  node.all_resources = !object.allocatable.empty();
  return node;
}

std::vector<ClusterNode> merged_nodes(std::vector<ClusterNode> nodes) {
  std::vector<ClusterNode> out;
  for (ClusterNode& node : nodes) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const ClusterNode& one) {
      return one.name == node.name && one.target.has_value() != node.target.has_value();
    });
    if (same == out.end()) {
      out.push_back(std::move(node));
      continue;
    }
    const bool object_is_there = node.target.has_value();
    ClusterNode& object = object_is_there ? *same : node;
    ClusterNode& recording = object_is_there ? node : *same;
    object.target = std::move(recording.target);
    object.gpu_memory_bytes = recording.gpu_memory_bytes;
    object.is_divided = recording.is_divided;
    object.source = same->source + ", " + node.source;
    if (!object.all_resources) object.resources = recording.resources;
    if (!object_is_there) *same = std::move(node);
  }
  return out;
}

LabelHolds holds(const formats::NodeRequirement& asked, const ClusterNode& node) {
  const auto found = node.labels.find(asked.key);
  if (found == node.labels.end()) {
    // A machine without a GPU gets none of discovery's labels, but who knows what others wrote.
    if (!node.all_labels) return LabelHolds::unknown;
    return asked.op == "NotIn" || asked.op == "DoesNotExist" ? LabelHolds::yes : LabelHolds::no;
  }
  for (const std::string& value : found->second)
    if (value_holds(asked, value)) return LabelHolds::yes;
  return LabelHolds::no;
}

const formats::NodeRequirement* unmet_requirement(const formats::ManifestPod& pod,
                                                  const ClusterNode& node) {
  for (const formats::NodeRequirement& one : pod.selector)
    if (holds(one, node) == LabelHolds::no) return &one;
  const formats::NodeRequirement* nearest = nullptr;
  for (const std::vector<formats::NodeRequirement>& term : pod.affinity) {
    const auto against = std::find_if(term.begin(), term.end(), [&](const auto& one) {
      return holds(one, node) == LabelHolds::no;
    });
    if (against == term.end()) return nullptr;
    if (nearest == nullptr) nearest = &*against;
  }
  return nearest;
}

const formats::Taint* untolerated(const formats::ManifestPod& pod, const ClusterNode& node,
                                  bool (*which)(const formats::Taint&)) {
  if (!node.taints) return nullptr;
  for (const formats::Taint& taint : *node.taints) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") continue;
    if (!which(taint)) continue;
    const bool passes = std::any_of(pod.tolerations.begin(), pod.tolerations.end(),
                                    [&](const formats::Toleration& one) {
                                      if (!one.effect.empty() && one.effect != taint.effect)
                                        return false;
                                      if (one.op == "Exists")
                                        return one.key.empty() || one.key == taint.key;
                                      return one.key == taint.key && one.value == taint.value;
                                    });
    if (!passes) return &taint;
  }
  return nullptr;
}

}  // namespace cufit::resolve
