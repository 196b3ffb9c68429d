// SPDX-License-Identifier: Apache-2.0
// What nodes that give the GPUs have besides: processors, memory, and GPUs that are not shared.
#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "resolve/kubernetes/lint_rules.h"

namespace cufit::resolve {
namespace {

using checks::Severity;
using Nodes = std::vector<const ClusterNode*>;

constexpr size_t k_most_named = 6;

const formats::PodResource* asked_of(const formats::ManifestContainer& container,
                                     std::string_view name) {
  // Without a request the limit is the request.
  for (const std::vector<formats::PodResource>* list : {&container.requests, &container.limits})
    for (const formats::PodResource& one : *list)
      if (one.name == name) return &one;
  return nullptr;
}

std::string amount(std::string_view name, double value) {
  if (name == "memory") return format_bytes(static_cast<uint64_t>(value));
  const double tenths = static_cast<double>(static_cast<uint64_t>(value * 10 + 0.5)) / 10;
  return format("{}", tenths);
}

// "gpu-1: 64, gpu-2: 64"
std::string had(std::string_view name, const Nodes& nodes) {
  std::string out;
  for (size_t i = 0; i < nodes.size() && i < k_most_named; ++i)
    out += (i == 0 ? "" : ", ") + nodes[i]->name + ": " +
           amount(name, nodes[i]->capacity.at(std::string(name)));
  return out + (nodes.size() > k_most_named ? ", ..." : "");
}

// What stands in the manifest is the least that the pod asks for.
void too_small(const PodView& pod, const std::string& name, const Nodes& nodes, LintOut& out) {
  double together = 0, init = 0;
  std::vector<std::pair<const ContainerView*, const formats::PodResource*>> by;
  for (const ContainerView& one : pod.containers) {
    const formats::PodResource* asked = asked_of(one.container, name);
    const std::optional<double> value =
        asked != nullptr ? formats::parse_quantity(asked->quantity) : std::nullopt;
    if (!value || *value <= 0 || *value > 1e18) continue;
    by.emplace_back(&one, asked);
    if (one.container.init && !one.container.sidecar)
      init = std::max(init, *value);
    else
      together += *value;
  }
  const double asked = std::max(together, init);
  const bool all_lack = std::all_of(nodes.begin(), nodes.end(), [&](const ClusterNode* node) {
    const auto found = node->capacity.find(name);
    return found != node->capacity.end() && found->second < asked;
  });
  if (by.empty() || nodes.empty() || !all_lack) return;
  const auto [view, first] = by[0];
  LintFinding& made =
      out.add("k8s_node_too_small", Severity::error, first->line,
              first->name + ": " + first->quantity, by.size() > 1 ? nullptr : &view->container);
  for (size_t i = 1; i < by.size() && i < k_most_named; ++i)
    out.prove(made, by[i].second->line, by[i].second->name + ": " + by[i].second->quantity);
  made.finding.args = {{"name", name},
                       {"asked", amount(name, asked)},
                       {"have", had(name, nodes)},
                       {"nodes", std::to_string(nodes.size())}};
}

// How often each GPU is offered, as GPU Feature Discovery says; 0 = not known.
uint64_t replicas_of(const ClusterNode& node) {
  const auto found = node.labels.find("nvidia.com/gpu.replicas");
  if (found == node.labels.end() || found->second.size() != 1) return 0;
  return parse_uint(found->second[0]).value_or(0);
}

// Several of `nvidia.com/gpu` where each is a share.
void shares(const ContainerView& view, const Nodes& nodes, LintOut& out) {
  for (const formats::PodResource& one : view.container.limits) {
    if (one.name != "nvidia.com/gpu" || whole_quantity(one.quantity).value_or(0) < 2) continue;
    if (!std::all_of(nodes.begin(), nodes.end(),
                     [](const ClusterNode* node) { return replicas_of(*node) > 1; }))
      continue;
    LintFinding& made = out.add("k8s_shared_gpu_count", Severity::warning, one.line,
                                one.name + ": " + one.quantity, &view.container);
    made.finding.evidence.push_back(
        {"file", nodes[0]->source,
         "nvidia.com/gpu.replicas: " + nodes[0]->labels.at("nvidia.com/gpu.replicas")[0]});
    made.finding.variant = "replicas";
    made.finding.args = {{"count", one.quantity},
                         {"node", nodes[0]->name},
                         {"replicas", std::to_string(replicas_of(*nodes[0]))}};
    made.yaml = "resources:\n  limits:\n    nvidia.com/gpu: 1\n";
  }
}

}  // namespace

void lint_capacity(const PodView& pod, const std::vector<const ClusterNode*>& nodes, LintOut& out) {
  if (nodes.empty()) return;
  for (const char* name : {"cpu", "memory"}) too_small(pod, name, nodes, out);
  for (const ContainerView& one : pod.containers) shares(one, nodes, out);
}

}  // namespace cufit::resolve
