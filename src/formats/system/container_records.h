// SPDX-License-Identifier: Apache-2.0
// Files in which container engines and the kubelet keep the names of containers and pods. All of them are written by programs
// of root or of the user whose container it is; names are printable and bounded. Used to name what a cgroup numbers.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace cufit::formats {

struct ContainerNames {
  std::string container;  // in its pod, or of the engine
  std::string pod, pod_namespace, pod_uid;
};

// /var/lib/docker/containers/ID/config.v2.json: {"Name":"/train",...,"Config":{"Labels":{"io.kubernetes.pod.name":...}}}
ContainerNames parse_docker_config(std::string_view json);
// An OCI bundle's config.json: annotations of containerd ("io.kubernetes.cri.sandbox-name"), of cri-o
// ("io.kubernetes.pod.name") and of nerdctl ("nerdctl/name").
ContainerNames parse_oci_config(std::string_view json);
// overlay-containers/containers.json of podman and cri-o: [{"id":"ID","names":["train"]}]; by id, at most 4096.
std::map<std::string, std::string> parse_storage_containers(std::string_view json);

// A folder of /var/log/pods: NAMESPACE_NAME_UID. No part can have "_" (Kubernetes names are DNS labels).
ContainerNames parse_pod_log_folder(std::string_view name);
// A link of /var/log/containers: POD_NAMESPACE_CONTAINER-ID.log; `id` is its container's. Empty names: it is none.
ContainerNames parse_container_log_link(std::string_view name, std::string& id);

}  // namespace cufit::formats
