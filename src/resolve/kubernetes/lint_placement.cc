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
std::string had(const std::string& key, const Nodes& nodes) {
  std::set<std::string> values;
  for (const ClusterNode* node : nodes)
    if (const auto found = node->labels.find(key); found != node->labels.end())
      for (const std::string& value : found->second)
        // Of a recording what the label would be if the cluster shared GPUs.
        if (found->second.size() == 1 || !ends_with(value, "-SHARED")) values.insert(value);
  return listed(values);
}

// Those that a pod is not kept from by its own `nodeName`.
Nodes candidates(const PodView& pod, const LintInput& input) {
  Nodes nodes;
  for (const ClusterNode& node : input.nodes)
    if (pod.pod.node_name.empty() || pod.pod.node_name == node.name) nodes.push_back(&node);
  return nodes;
}

bool none_fulfils(const formats::NodeRequirement& asked, const Nodes& nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [&](const ClusterNode* node) {
    return holds(asked, *node) == LabelHolds::no;
  });
}

// "`zone: a` (gpu-1), `disk: ssd` (gpu-2)": what each of them lacks.
std::string lacking(const PodView& pod, const Nodes& nodes) {
  std::set<std::string> texts;
  for (const ClusterNode* node : nodes)
    if (const formats::NodeRequirement* one = unmet_requirement(pod.pod, *node))
      texts.insert("`" + words_of(*one) + "` (" + node->name + ")");
  return listed(texts);
}

Nodes matching(const PodView& pod, const LintInput& input, LintOut& out) {
  Nodes nodes;
  const Nodes all = candidates(pod, input);
  const formats::NodeRequirement* against = nullptr;
  bool of_all = false;
  for (const ClusterNode* node : all) {
    const formats::NodeRequirement* one = unmet_requirement(pod.pod, *node);
    if (one == nullptr) nodes.push_back(node);
    if (one == nullptr || of_all) continue;
    if (against == nullptr) against = one;
    // What one node lacks, another may have: the label that none has is the one to name.
    of_all = none_fulfils(*one, all);
    if (of_all) against = one;
  }
  if (!nodes.empty() || against == nullptr) return nodes;
  LintFinding& made =
      out.add("k8s_no_node_matches", Severity::error, against->line, words_of(*against));
  const std::string have = had(against->key, all);
  made.finding.args = {{"asked", words_of(*against)},
                       {"key", against->key},
                       {"have", of_all ? have : lacking(pod, all)},
                       {"nodes", std::to_string(all.size())}};
  if (!of_all) made.finding.variant = "together";
  if (of_all && have.empty()) made.finding.variant = "no_label";
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

// What the scheduler reserves of one resource: the larger of what an init container asks and of
// what the others ask together.
struct Demand {
  std::string name;
  uint64_t count = 0, init = 0;
  // Who asks; several containers are the pod's.
  std::vector<std::pair<const formats::ManifestContainer*, const formats::PodResource*>> by;
};

std::vector<Demand> demands_of(const PodView& pod) {
  std::vector<Demand> out;
  for (const ContainerView& one : pod.containers)
    for (const formats::PodResource& limit : one.container.limits) {
      const std::optional<uint64_t> count = whole_quantity(limit.quantity);
      if (!is_gpu_resource(limit.name) || !count || *count == 0) continue;
      auto found = std::find_if(out.begin(), out.end(),
                                [&](const Demand& other) { return other.name == limit.name; });
      if (found == out.end()) found = out.insert(out.end(), Demand{limit.name, 0, 0, {}});
      if (one.container.init && !one.container.sidecar)
        found->init = std::max(found->init, *count);
      else
        found->count += *count;
      found->by.emplace_back(&one.container, &limit);
    }
  for (Demand& one : out) one.count = std::max(one.count, one.init);
  return out;
}

void say_lacking(const Demand& asked, const Nodes& nodes, bool objects, LintOut& out) {
  const bool mig = is_mig_resource(asked.name);
  const auto [container, limit] = asked.by[0];
  const bool several = asked.by.size() > 1;
  LintFinding& made = out.add(mig ? "k8s_mig_resource_missing" : "kubernetes_gpu_insufficient",
                              objects ? Severity::error : Severity::warning, limit->line,
                              limit->name + ": " + limit->quantity, several ? nullptr : container);
  for (size_t i = 1; i < asked.by.size() && i < k_most_named; ++i)
    out.prove(made, asked.by[i].second->line,
              asked.by[i].second->name + ": " + asked.by[i].second->quantity);
  const std::string have = offers(nodes);
  made.finding.args = {{"name", asked.name},
                       {"count", std::to_string(asked.count)},
                       {"have", have},
                       {"nodes", std::to_string(nodes.size())}};
  const bool named = std::any_of(nodes.begin(), nodes.end(), [&](const ClusterNode* node) {
    return node->resources.count(asked.name) > 0;
  });
  if (have.empty())
    made.finding.variant = mig ? "nothing" : "manifest_nothing";
  else if (!mig)
    made.finding.variant = !named ? "manifest_name" : objects ? "manifest" : "manifest_recorded";
}

// Removes the nodes that do not give the resource; says so where none is left.
void offering(const Demand& asked, Nodes& nodes, LintOut& out) {
  if (nodes.empty()) return;
  Nodes left;
  bool objects = true;
  for (const ClusterNode* node : nodes) {
    if (!lacks(*node, asked.name, asked.count)) left.push_back(node);
    objects = objects && node->all_resources;
  }
  if (left.empty()) say_lacking(asked, nodes, objects, out);
  nodes = std::move(left);
}

// Set by Kubernetes and its autoscaler on a node that is cordoned, not ready or on its way out.
bool is_condition(const formats::Taint& taint) {
  return starts_with(taint.key, "node.kubernetes.io/") ||
         starts_with(taint.key, "node.cloudprovider.kubernetes.io/") ||
         taint.key == "ToBeDeletedByClusterAutoscaler";
}

// The taint that keeps the pod off each of the nodes, and the node that has it. A taint of the
// node's state is the last to be named: a toleration would put pods where none should be.
std::pair<const formats::Taint*, const ClusterNode*> taint_of_all(const PodView& pod,
                                                                  const Nodes& nodes) {
  std::pair<const formats::Taint*, const ClusterNode*> state{nullptr, nullptr}, kept = state;
  for (const ClusterNode* node : nodes) {
    const formats::Taint* on_state = untolerated(pod.pod, *node, is_condition);
    if (on_state != nullptr && pod.pod.kind != "DaemonSet") {  // whose pods tolerate these
      if (state.first == nullptr) state = {on_state, node};
      continue;
    }
    const formats::Taint* one = untolerated(
        pod.pod, *node, [](const formats::Taint& taint) { return !is_condition(taint); });
    if (one == nullptr) return {nullptr, nullptr};
    if (kept.first == nullptr) kept = {one, node};
  }
  return kept.first != nullptr ? kept : state;
}

void taints(const PodView& pod, const Nodes& nodes, LintOut& out) {
  if (!pod.pod.node_name.empty()) return;  // past the scheduler
  const auto [against, node] = taint_of_all(pod, nodes);
  if (against == nullptr) return;
  const std::string text =
      against->key + (against->value.empty() ? "" : "=" + against->value) + ":" + against->effect;
  LintFinding& made = out.add("kubernetes_gpu_insufficient", Severity::warning, pod.pod.line, text);
  made.finding.evidence[0] = {"file", node->source, text};
  made.finding.args = {{"taint", text}, {"node", node->name}};
  made.finding.variant = is_condition(*against) ? "manifest_condition" : "manifest_taint";
  if (is_condition(*against)) return;
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
  const std::vector<Demand> demands = demands_of(pod);
  for (const ClusterNode* node : candidates(pod, input)) {
    const bool given = std::none_of(demands.begin(), demands.end(), [&](const Demand& one) {
      return lacks(*node, one.name, one.count);
    });
    if (given && unmet_requirement(pod.pod, *node) == nullptr) nodes.push_back(node);
  }
  return nodes;
}

void lint_placement(const PodView& pod, const LintInput& input,
                    const knowledge::Knowledge& knowledge, LintOut& out) {
  unknown_profile(pod, knowledge, out);
  if (input.nodes.empty() || !pod.asks_gpu()) return;
  Nodes nodes = matching(pod, input, out);
  for (const Demand& one : demands_of(pod)) offering(one, nodes, out);
  if (nodes.empty()) return;
  lint_capacity(pod, nodes, out);
  taints(pod, nodes, out);
}

}  // namespace cufit::resolve
