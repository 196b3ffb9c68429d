// SPDX-License-Identifier: Apache-2.0
#include "formats/system/kubernetes_pod.h"

#include "base/format.h"

namespace cufit::formats {
namespace {

std::string text_of(const YamlNode& map, std::string_view key) {
  const YamlNode* node = map.find(key);
  return node != nullptr && node->is_scalar() ? node->text : std::string();
}

bool is_true(const YamlNode& node) { return node.is_scalar() && node.text == "true"; }

size_t line_if_true(const YamlNode& map, std::string_view key) {
  const YamlNode* node = map.find(key);
  return node != nullptr && is_true(*node) ? map.line_of(key) : 0;
}

std::vector<PodResource> quantities(const YamlNode& map) {
  std::vector<PodResource> out;
  for (size_t i = 0; i < map.keys.size(); ++i)
    if (map.items[i].is_scalar()) out.push_back({map.keys[i], map.items[i].text, map.key_lines[i]});
  return out;
}

void read_variables(const YamlNode& list, ManifestContainer& out) {
  if (!list.is_sequence()) return;
  for (const YamlNode& one : list.items) {
    PodVariable variable{text_of(one, "name"), std::nullopt, one.line};
    const YamlNode* value = one.find("value");
    if (one.find("valueFrom") == nullptr)
      variable.value = value != nullptr && value->is_scalar() ? value->text : std::string();
    if (!variable.name.empty()) out.variables.push_back(std::move(variable));
  }
}

std::vector<NodeRequirement> requirements_of(const YamlNode& list) {
  std::vector<NodeRequirement> out;
  if (!list.is_sequence()) return out;
  for (const YamlNode& one : list.items)
    out.push_back(
        {text_of(one, "key"), text_of(one, "operator"), yaml_words(one.at("values")), one.line});
  return out;
}

void read_placement(const YamlNode& spec, ManifestPod& pod) {
  const YamlNode& selector = spec.at("nodeSelector");
  for (size_t i = 0; i < selector.keys.size(); ++i)
    if (selector.items[i].is_scalar())
      pod.selector.push_back(
          {selector.keys[i], "In", {selector.items[i].text}, selector.key_lines[i]});
  const YamlNode& terms =
      spec.at({"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
               "nodeSelectorTerms"});
  if (terms.is_sequence())
    for (const YamlNode& term : terms.items)
      pod.affinity.push_back(requirements_of(term.at("matchExpressions")));
  const YamlNode& tolerations = spec.at("tolerations");
  if (tolerations.is_sequence())
    for (const YamlNode& one : tolerations.items)
      pod.tolerations.push_back({text_of(one, "key"), text_of(one, "operator"),
                                 text_of(one, "value"), text_of(one, "effect")});
}

void read_volumes(const YamlNode& list, ManifestPod& pod) {
  if (!list.is_sequence()) return;
  for (const YamlNode& one : list.items) {
    PodVolume volume;
    volume.name = text_of(one, "name");
    volume.line = one.line;
    if (one.find("emptyDir") != nullptr) {
      const YamlNode& empty_dir = one.at("emptyDir");
      volume.kind = text_of(empty_dir, "medium") == "Memory" ? PodVolume::Kind::memory
                                                             : PodVolume::Kind::disk;
      volume.size_limit = text_of(empty_dir, "sizeLimit");
    } else if (one.find("hostPath") != nullptr) {
      volume.kind = PodVolume::Kind::host_path;
      volume.host_path = text_of(one.at("hostPath"), "path");
    }
    pod.volumes.push_back(std::move(volume));
  }
}

void read_containers(const YamlNode& spec, const char* key, const std::string& path, bool init,
                     ManifestPod& pod) {
  const YamlNode& list = spec.at(key);
  if (!list.is_sequence()) return;
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (!list.items[i].is_map()) continue;
    ManifestContainer one = read_container(list.items[i], format("{}.{}[{}]", path, key, i));
    one.init = init;
    one.sidecar = init && text_of(list.items[i], "restartPolicy") == "Always";
    pod.containers.push_back(std::move(one));
  }
}

}  // namespace

std::vector<std::string> yaml_words(const YamlNode& node) {
  std::vector<std::string> out;
  for (const YamlNode& item : node.items) out.push_back(item.text);
  return node.is_sequence() ? out : std::vector<std::string>();
}

void read_resources(const YamlNode& resources, ManifestContainer& out) {
  out.limits = quantities(resources.at("limits"));
  out.requests = quantities(resources.at("requests"));
  out.claims = !resources.at("claims").items.empty();
}

ManifestContainer read_container(const YamlNode& node, const std::string& path) {
  ManifestContainer out;
  out.name = text_of(node, "name");
  out.image = text_of(node, "image");
  out.path = path;
  out.line = node.line;
  out.command = yaml_words(node.at("command"));
  out.args = yaml_words(node.at("args"));
  out.command_line = node.line_of(out.command.empty() ? "args" : "command");
  read_variables(node.at("env"), out);
  out.variables_from = !node.at("envFrom").items.empty();
  out.resources_line = node.line_of("resources");
  read_resources(node.at("resources"), out);
  const YamlNode& mounts = node.at("volumeMounts");
  if (mounts.is_sequence())
    for (const YamlNode& one : mounts.items)
      out.mounts.push_back({text_of(one, "name"), text_of(one, "mountPath"), one.line});
  out.privileged_line = line_if_true(node.at("securityContext"), "privileged");
  return out;
}

void read_pod_spec(const YamlNode& spec, const std::string& path, ManifestPod& pod) {
  pod.path = path;
  read_containers(spec, "initContainers", path, true, pod);
  read_containers(spec, "containers", path, false, pod);
  read_volumes(spec.at("volumes"), pod);
  read_placement(spec, pod);
  if (spec.find("restartPolicy") != nullptr) {
    pod.restart_policy = text_of(spec, "restartPolicy");
    pod.restart_line = spec.line_of("restartPolicy");
  }
  pod.host_pid_line = line_if_true(spec, "hostPID");
  pod.host_ipc_line = line_if_true(spec, "hostIPC");
  pod.runtime_class = text_of(spec, "runtimeClassName");
  pod.node_name = text_of(spec, "nodeName");
}

ManifestNode read_node(const YamlNode& object, const std::string& name) {
  ManifestNode node;
  node.name = name;
  node.line = object.line;
  const auto fill = [](const YamlNode& map, std::map<std::string, std::string>& into) {
    for (size_t i = 0; i < map.keys.size(); ++i)
      if (map.items[i].is_scalar()) into[map.keys[i]] = map.items[i].text;
  };
  fill(object.at({"metadata", "labels"}), node.labels);
  fill(object.at({"status", "allocatable"}), node.allocatable);
  node.unschedulable = text_of(object.at("spec"), "unschedulable") == "true";
  const YamlNode& conditions = object.at({"status", "conditions"});
  if (conditions.is_sequence())
    for (const YamlNode& one : conditions.items) {
      const std::string status = text_of(one, "status");
      if (text_of(one, "type") == "Ready" && (status == "False" || status == "Unknown"))
        node.not_ready = true;
    }
  const YamlNode& taints = object.at({"spec", "taints"});
  if (taints.is_sequence())
    for (const YamlNode& one : taints.items)
      node.taints.push_back({text_of(one, "key"), text_of(one, "value"), text_of(one, "effect")});
  return node;
}

}  // namespace cufit::formats
