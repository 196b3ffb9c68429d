// SPDX-License-Identifier: Apache-2.0
#include "formats/system/container_records.h"

#include <vector>

#include "base/format.h"
#include "base/json.h"
#include "formats/prose/printable.h"
#include "formats/system/cgroup_owner.h"

namespace cufit::formats {
namespace {

constexpr size_t k_most_containers = 4096;
constexpr size_t k_longest_name = 253;  // a DNS subdomain's

std::string record_name(std::string_view text) { return printable(text, k_longest_name); }

// The first of some keys that says anything.
std::string first_text(const Json* object, std::initializer_list<const char*> keys) {
  if (object == nullptr) return {};
  for (const char* key : keys)
    if (const std::string& text = object->text_at(key); !text.empty()) return record_name(text);
  return {};
}

// As containerd's pkg/cri/annotations, cri-o's pkg/annotations and the kubelet's labels for docker spell them.
ContainerNames names_of_annotations(const Json* annotations) {
  ContainerNames out;
  out.container = first_text(annotations, {"io.kubernetes.cri.container-name",
                                           "io.kubernetes.container.name", "nerdctl/name"});
  out.pod = first_text(annotations, {"io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"});
  out.pod_namespace = first_text(
      annotations, {"io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace"});
  out.pod_uid = first_text(annotations, {"io.kubernetes.cri.sandbox-uid", "io.kubernetes.pod.uid"});
  return out;
}

}  // namespace

ContainerNames parse_docker_config(std::string_view json) {
  const Json root = Json::parse(json).value_or(Json());
  const Json* config = root.member("Config");
  ContainerNames out = names_of_annotations(config == nullptr ? nullptr : config->member("Labels"));
  std::string_view name = root.text_at("Name");
  if (starts_with(name, "/")) name.remove_prefix(1);
  if (out.container.empty()) out.container = record_name(name);
  return out;
}

ContainerNames parse_oci_config(std::string_view json) {
  const Json root = Json::parse(json).value_or(Json());
  return names_of_annotations(root.member("annotations"));
}

std::map<std::string, std::string> parse_storage_containers(std::string_view json) {
  std::map<std::string, std::string> out;
  const Json root = Json::parse(json).value_or(Json());
  if (!root.is_array()) return out;
  for (const Json& each : root) {
    if (out.size() >= k_most_containers) break;
    const std::string& id = each.text_at("id");
    const Json* names = each.member("names");
    if (!is_container_id(id) || names == nullptr || !names->is_array() || names->empty()) continue;
    out[id] = record_name((*names)[0].text());
  }
  return out;
}

ContainerNames parse_pod_log_folder(std::string_view name) {
  const std::vector<std::string_view> parts = split(name, '_');
  if (parts.size() != 3 || parts[0].empty() || parts[1].empty() || parts[2].empty()) return {};
  return {{}, record_name(parts[1]), record_name(parts[0]), record_name(parts[2])};
}

ContainerNames parse_container_log_link(std::string_view name, std::string& id) {
  if (!ends_with(name, ".log")) return {};
  name.remove_suffix(4);
  if (name.size() < 66 || name[name.size() - 65] != '-') return {};
  const std::string_view digits = name.substr(name.size() - 64);
  const std::vector<std::string_view> parts = split(name.substr(0, name.size() - 65), '_');
  if (!is_container_id(digits) || parts.size() != 3 || parts[0].empty() || parts[1].empty() ||
      parts[2].empty())
    return {};
  id = std::string(digits);
  return {record_name(parts[2]), record_name(parts[0]), record_name(parts[1]), {}};
}

}  // namespace cufit::formats
