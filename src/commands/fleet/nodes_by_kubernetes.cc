// SPDX-License-Identifier: Apache-2.0
// kubectl brings what the pods of `cufit export --to k8s-job` said.
#include "base/format.h"
#include "base/json.h"
#include "commands/fleet/node_questions.h"
#include "facts/facts_json.h"

namespace cufit::commands {
namespace {

constexpr const char* k_pods = "app.kubernetes.io/name=cufit-fleet-check";

struct Pod {
  std::string name, space, node, phase;
};

Result<std::vector<Pod>> pods_of(const std::string& text) {
  CUFIT_TRY(json, facts::read_json_object(text, "kubectl get pods"));
  std::vector<Pod> out;
  const Json* items = json.member("items");
  if (items == nullptr || !items->is_array()) return out;
  for (const Json& item : *items) {
    const Json* metadata = item.is_object() ? item.member("metadata") : nullptr;
    const Json* spec = item.is_object() ? item.member("spec") : nullptr;
    const Json* status = item.is_object() ? item.member("status") : nullptr;
    if (metadata == nullptr || !metadata->is_object()) continue;
    Pod pod;
    pod.name = metadata->text_at("name");
    pod.space = metadata->text_at("namespace");
    if (spec != nullptr && spec->is_object()) pod.node = spec->text_at("nodeName");
    if (status != nullptr && status->is_object()) pod.phase = status->text_at("phase");
    out.push_back(std::move(pod));
  }
  return out;
}

}  // namespace

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
  for (const Pod& pod : pods)
    tasks.push_back({pod.node.empty() ? pod.name : pod.node,
                     {"kubectl", "logs", "--namespace=" + pod.space, "--", pod.name}});
  CUFIT_TRY(answers, run_all(tasks, seconds, k_most_of_a_node, "kubectl logs"));
  std::vector<NodeText> out;
  for (size_t i = 0; i < answers.size(); ++i) {
    host::FanOutAnswer& answer = answers[i];
    const bool spoke = answer.out.find('{') != std::string::npos;
    std::string why = spoke ? "" : why_none(answer, seconds);
    if (!spoke && pods[i].phase == "Pending") why = "its pod waits to be started";
    out.push_back({answer.name, spoke ? std::move(answer.out) : "", std::move(why)});
  }
  return out;
}

}  // namespace cufit::commands
