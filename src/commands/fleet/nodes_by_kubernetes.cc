// SPDX-License-Identifier: Apache-2.0
// kubectl brings what the pods of `cufit export --to k8s-job` said.
#include <map>

#include "base/format.h"
#include "base/json.h"
#include "commands/fleet/node_questions.h"
#include "facts/facts_json.h"

namespace cufit::commands {
namespace {

constexpr const char* k_pods = "app.kubernetes.io/name=cufit-fleet-check";

}  // namespace

// Of several of one node, earlier runs of the Job, the one that was made last.
Result<std::vector<FleetPod>> pods_of(const std::string& text) {
  CUFIT_TRY(json, facts::read_json_object(text, "kubectl get pods"));
  std::vector<FleetPod> out;
  std::map<std::string, size_t> of_node;  // a pod that has none yet stands for itself
  const Json* items = json.member("items");
  if (items == nullptr || !items->is_array()) return out;
  for (const Json& item : *items) {
    const Json* metadata = item.is_object() ? item.member("metadata") : nullptr;
    const Json* spec = item.is_object() ? item.member("spec") : nullptr;
    const Json* status = item.is_object() ? item.member("status") : nullptr;
    if (metadata == nullptr || !metadata->is_object()) continue;
    FleetPod pod;
    pod.made = metadata->text_at("creationTimestamp");
    pod.name = metadata->text_at("name");
    pod.space = metadata->text_at("namespace");
    if (spec != nullptr && spec->is_object()) pod.node = spec->text_at("nodeName");
    if (status != nullptr && status->is_object()) pod.phase = status->text_at("phase");
    const auto [known, fresh] =
        of_node.emplace(pod.node.empty() ? "/" + pod.name : pod.node, out.size());
    if (fresh)
      out.push_back(std::move(pod));
    else if (out[known->second].made < pod.made)
      out[known->second] = std::move(pod);
  }
  return out;
}

Result<std::vector<NodeText>> ask_by_kubernetes(const FleetSource& source, double seconds) {
  std::vector<std::string> command = {"kubectl", "get", "pods", "-l", k_pods, "-o", "json"};
  if (source.kube_namespace) command.push_back("--namespace=" + *source.kube_namespace);
  CUFIT_TRY(listed, run_all({{"kubectl", command}}, seconds, k_most_of_all_nodes, "kubectl"));
  if (listed[0].code != 0 || !listed[0].start_error.empty())
    return fail(Code::not_found, format("`kubectl get pods`: {}", why_none(listed[0], seconds)));
  CUFIT_TRY(pods, pods_of(listed[0].out));
  if (pods.empty())
    return fail(Code::not_found,
                format("no pod has the label {}: `cufit export --to k8s-job` makes the Job that "
                       "asks the nodes",
                       k_pods));
  std::vector<host::FanOutTask> tasks;
  for (const FleetPod& pod : pods)
    tasks.push_back({pod.node.empty() ? pod.name : pod.node,
                     {"kubectl", "logs", "--namespace=" + pod.space, "--", pod.name}});
  CUFIT_TRY(answers, run_all(tasks, seconds, k_most_of_a_node, "kubectl logs"));
  std::vector<NodeText> out;
  for (size_t i = 0; i < answers.size(); ++i) {
    NodeText node = text_of(std::move(answers[i]), seconds);
    if (!node.why.empty() && pods[i].phase == "Pending") node.why = "its pod waits to be started";
    out.push_back(std::move(node));
  }
  return out;
}

}  // namespace cufit::commands
