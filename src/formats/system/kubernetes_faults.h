// SPDX-License-Identifier: Apache-2.0
// Fields of a pod's spec that have another type than the API's, for kubernetes_objects.cc: those
// that people get wrong, and no schema of all fields.
#pragma once

#include <string>

#include "formats/system/kubernetes_objects.h"

namespace cufit::formats {

// Of the spec of a pod, which lies at `path`, into pod.faults.
void note_faults(const YamlNode& spec, const std::string& path, ManifestPod& pod);

}  // namespace cufit::formats
