// SPDX-License-Identifier: Apache-2.0
// Which of the given nodes take a pod: labels, resources, taints.
#include <algorithm>
#include <set>

#include "base/format.h"
#include "resolve/kubernetes/lint_rules.h"

namespace cufit::resolve {
namespace {

using checks::Severity;
using Nodes = std::vector<const ClusterNode*>;

constexpr size_t k_most_named = 6;

std::string listed(const std::set<std::string>& texts) {
  std::string out;
  size_t count = 0;
  for (const std::string& one : texts) {
    if (count == k_most_named) return out + ", ...";
    out += (count++ == 0 ? "" : ", ") + one;
  }
  return out;
}

std::string words_of(const formats::NodeRequirement& one) {
  if (one.op == "In" && one.values.size() == 1) return one.key + ": " + one.values[0];
  return one.key + " " + one.op + (one.values.empty() ? "" : " " + join(one.values, ", "));
}

// What the nodes have under the key that none of them fits.
std::string had(const std::string& key, const std::vector<ClusterNode>& nodes) {
  std::set<std::string> values;
  for (const ClusterNode& node : nodes)
    if (const auto found = node.labels.find(key); found != node.labels.end())
      for (const std::string& value : found->second)
        if (!ends_with(value, "-SHARED")) values.insert(value);
  return listed(values);
}

Nodes matching(const PodView& pod, const LintInput& input, LintOut& out) {
  Nodes nodes;
  const formats::NodeRequirement* against = nullptr;
  for (const ClusterNode& node : input.nodes) {
    const formats::NodeRequirement* one = unmet_requirement(pod.pod, node);
    if (one == nullptr)
      nodes.push_back(&node);
    else if (against == nullptr)
      against = one;
  }
  if (!nodes.empty() || against == nullptr) return nodes;
  LintFinding& made =
      out.add("k8s_no_node_matches", Severity::error, against->line, words_of(*against));
  const std::string have = had(against->key, input.nodes);
  made.finding.args = {{"asked", words_of(*against)},
                       {"key", against->key},
                       {"have", have},
                       {"nodes", std::to_string(input.nodes.size())}};
  if (have.empty()) made.finding.variant = "no_label";
  return nodes;
}

std::string offers(const Nodes& nodes) {
  std::set<std::string> names;
  for (const ClusterNode* node : nodes)
    for (const auto& [name, count] : node->resources)
      if (starts_with(name, "nvidia.com/") && count > 0)
        names.insert(name + ": " + std::to_string(count));
  return listed(names);
}

// Whether the node can be said not to give so many of it: a recording knows nothing of sharing,
// which multiplies GPUs and instances, nor of names that the plug-in was told to use.
bool lacks(const ClusterNode& node, const std::string& name, uint64_t count) {
  const auto found = node.resources.find(name);
  const uint64_t have = found == node.resources.end() ? 0 : found->second;
  if (have >= count) return false;
  if (node.all_resources) return true;
  if (!node.target || ends_with(name, ".shared")) return false;
  if (is_mig_resource(name)) return have == 0;
  // By the strategy "single" instances go by the name of whole GPUs.
  return !node.is_divided;
}

// "1g.99gb": no GPU of the table is divided so.
bool is_known_profile(std::string name, const knowledge::Knowledge& knowledge) {
  name = name.substr(std::string_view("nvidia.com/mig-").size());
  if (ends_with(name, ".shared")) name = name.substr(0, name.size() - 7);
  if (knowledge.mig_profiles.empty()) return true;
  return std::any_of(knowledge.mig_profiles.begin(), knowledge.mig_profiles.end(),
                     [&](const knowledge::MigProfileRow& row) {
                       std::string label(row.name);
                       std::replace(label.begin(), label.end(), '+', '.');
                       return label == name;
                     });
}

void unknown_profile(const PodView& pod, const knowledge::Knowledge& knowledge, LintOut& out) {
  for (const ContainerView& one : pod.containers)
    for (const formats::PodResource& limit : one.container.limits) {
      if (!is_mig_resource(limit.name) || is_known_profile(limit.name, knowledge)) continue;
      LintFinding& made = out.add("k8s_mig_resource_missing", Severity::warning, limit.line,
                                  limit.name + ": " + limit.quantity, &one.container);
      made.finding.variant = "no_profile";
      made.finding.args["name"] = limit.name;
      made.finding.evidence.push_back({"table", "data/mig.toml", "mig_profile"});
    }
}

// Removes the nodes that do not give the resource; says so where none is left.
void offering(const ContainerView& view, Nodes& nodes, LintOut& out) {
  for (const formats::PodResource& limit : view.container.limits) {
    const std::optional<uint64_t> count = whole_quantity(limit.quantity);
    if (!is_gpu_resource(limit.name) || !count || *count == 0 || nodes.empty()) continue;
    Nodes left;
    bool objects = true;
    for (const ClusterNode* node : nodes) {
      if (!lacks(*node, limit.name, *count)) left.push_back(node);
      objects = objects && node->all_resources;
    }
    if (left.empty()) {
      const bool mig = is_mig_resource(limit.name);
      LintFinding& made = out.add(mig ? "k8s_mig_resource_missing" : "kubernetes_gpu_insufficient",
                                  objects ? Severity::error : Severity::warning, limit.line,
                                  limit.name + ": " + limit.quantity, &view.container);
      const std::string have = offers(nodes);
      made.finding.args = {{"name", limit.name},
                           {"count", limit.quantity},
                           {"have", have},
                           {"nodes", std::to_string(nodes.size())}};
      made.finding.variant =
          std::string(mig ? "" : "manifest") + (have.empty() ? (mig ? "nothing" : "_nothing") : "");
    }
    nodes = std::move(left);
  }
}

void taints(const PodView& pod, const Nodes& nodes, LintOut& out) {
  const formats::Taint* against = nullptr;
  for (const ClusterNode* node : nodes) {
    const formats::Taint* one = untolerated(pod.pod, *node);
    if (one == nullptr) return;
    if (against == nullptr) against = one;
  }
  if (against == nullptr) return;
  const std::string text =
      against->key + (against->value.empty() ? "" : "=" + against->value) + ":" + against->effect;
  LintFinding& made = out.add("kubernetes_gpu_insufficient", Severity::warning, pod.pod.line, text);
  made.finding.evidence[0] = {"file", nodes[0]->source, text};
  made.finding.variant = "manifest_taint";
  made.finding.args = {{"taint", text}, {"node", nodes[0]->name}};
  const bool plain = against->key.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789./_-") == std::string::npos &&
                     !against->key.empty();
  if (plain)
    made.yaml = "tolerations:\n- key: " + against->key +
                "\n  operator: Exists\n  effect: " + against->effect + "\n";
}

}  // namespace

std::vector<const ClusterNode*> possible_nodes(const PodView& pod, const LintInput& input) {
  Nodes nodes;
  for (const ClusterNode& node : input.nodes) {
    bool possible = unmet_requirement(pod.pod, node) == nullptr;
    for (const ContainerView& one : pod.containers)
      for (const formats::PodResource& limit : one.container.limits)
        possible =
            possible && !(is_gpu_resource(limit.name) &&
                          lacks(node, limit.name, whole_quantity(limit.quantity).value_or(0)));
    if (possible) nodes.push_back(&node);
  }
  return nodes;
}

void lint_placement(const PodView& pod, const LintInput& input,
                    const knowledge::Knowledge& knowledge, LintOut& out) {
  unknown_profile(pod, knowledge, out);
  if (input.nodes.empty() || !pod.asks_gpu()) return;
  Nodes nodes = matching(pod, input, out);
  for (const ContainerView& one : pod.containers) offering(one, nodes, out);
  if (!nodes.empty()) taints(pod, nodes, out);
}

}  // namespace cufit::resolve
