// SPDX-License-Identifier: Apache-2.0
#include "facts/redact_sample.h"

#include "base/format.h"
#include "base/path.h"

namespace cufit::facts {

std::string SampleRedactor::numbered(const char* kind, const std::string& name) {
  if (name.empty()) return {};
  std::map<std::string, size_t>& names = seen_[kind];
  const size_t number = names.try_emplace(name, names.size() + 1).first->second;
  const std::string_view form = kind;
  if (form == "uuid") {
    // "GPU-..." and "MIG-...": tools tell them by their beginning.
    const size_t dash = name.find('-');
    const std::string front = dash == 3 ? name.substr(0, 4) : "GPU-";
    return format("{}00000000-0000-0000-0000-{:012}", front, number);
  }
  if (form == "container") return format("{:064x}", number);
  return format("{}{}", kind, number);
}

void SampleRedactor::redact_owner(ProcessOwner& owner) {
  // root and what the system runs as tell nobody's name.
  if (owner.uid && *owner.uid >= 1000) {
    owner.user = numbered("user", owner.user.empty() ? std::to_string(*owner.uid) : owner.user);
    owner.uid = 1000;
  }
  // "/home/ann/venv/bin/python train.py --data /mnt/ann" is "python".
  const std::string first = owner.command.substr(0, owner.command.find(' '));
  owner.command = std::string(file_name(first));
  owner.container = numbered("container", owner.container);
  owner.container_name = numbered("container-", owner.container_name);
  owner.pod_uid = numbered("pod-uid-", owner.pod_uid);
  owner.pod = numbered("pod-", owner.pod);
  owner.pod_namespace = numbered("namespace-", owner.pod_namespace);
  owner.slurm_job = numbered("", owner.slurm_job);
  owner.unit = numbered("unit-", owner.unit);
  owner.quota = numbered("/quota/", owner.quota);
  owner.environment = numbered("class-", owner.environment);
  owner.python_environment = numbered("/env/", owner.python_environment);
}

void SampleRedactor::redact(GpuSample& sample) {
  for (SampledGpu& gpu : sample.gpus) {
    gpu.uuid = numbered("uuid", gpu.uuid);
    gpu.parent_uuid = numbered("uuid", gpu.parent_uuid);
    if (!gpu.pods) continue;
    for (SampledPod& pod : *gpu.pods) {
      pod.pod_namespace = numbered("namespace-", pod.pod_namespace);
      pod.pod = numbered("pod-", pod.pod);
      pod.container = numbered("container-", pod.container);
    }
  }
  for (SampledProcess& process : sample.processes) redact_owner(process.owner);
}

}  // namespace cufit::facts
