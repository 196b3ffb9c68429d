// SPDX-License-Identifier: Apache-2.0
// The fields of one pod's spec, and of a node, for kubernetes_objects.cc.
#pragma once

#include <string>

#include "formats/system/kubernetes_objects.h"

namespace cufit::formats {

// Scalars of a list; what is no scalar counts as an empty word.
std::vector<std::string> yaml_words(const YamlNode& node);
// Fills all but kind, name, role of `pod` from its spec, which lies at `path`.
void read_pod_spec(const YamlNode& spec, const std::string& path, ManifestPod& pod);
// One container, which lies at `path`.
ManifestContainer read_container(const YamlNode& node, const std::string& path);
ManifestNode read_node(const YamlNode& object, const std::string& name);
// limits and requests, without the parts of a container around them.
void read_resources(const YamlNode& resources, ManifestContainer& out);

}  // namespace cufit::formats
