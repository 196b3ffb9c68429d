// SPDX-License-Identifier: Apache-2.0
// /proc/PID/cgroup as the answer to who runs a process: a container, a pod, a Slurm job, a systemd unit. Used for the
// attribution of processes on GPUs; names that are not in the path (of a pod, of a docker container) come from elsewhere.
//
//   0::/system.slice/docker-ID.scope                                            v2: one line
//   0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice/cri-containerd-ID.scope
//   5:memory:/slurm/uid_1000/job_12/step_0/task_0                               v1: a line for each hierarchy
//   1:name=systemd:/system.slice/slurmd.service
//
// Inside a cgroup namespace the kernel cuts the path at its root: "0::/" says nothing, "/../docker-ID.scope" names a
// neighbour. What is told is as good as the path: whoever may make cgroups may also name them.
#pragma once

#include <string>
#include <string_view>

namespace cufit::formats {

// Printable; empty where the path does not tell.
struct CgroupOwner {
  // "docker", "containerd", "cri-o", "podman", "lxc", "nspawn"; empty with a container: kubelet's cgroupfs driver and
  // docker's --cgroup-parent name none.
  std::string runtime;
  std::string container;       // 64 hexadecimal digits; "lxc" and "nspawn" have names alone
  std::string container_name;  // of lxc and nspawn
  std::string pod_uid;         // with dashes; of a static pod 32 digits
  std::string slurm_job;       // "123"
  std::string slurm_step;      // "0", "batch", "extern", "interactive"
  std::string
      unit;  // unescaped: "app-my-train.service" where systemd has "app-my\x2dtrain.service"
};

// Of containers in containers (kind, docker in docker, a kubelet in a virtual machine's container) the innermost.
CgroupOwner parse_cgroup_owner(std::string_view text);

// A step's number as Slurm's variables have it: those from 0xfffffffa on are names ("batch").
std::string slurm_step_name(std::string_view number);
// 64 hexadecimal digits, small letters.
bool is_container_id(std::string_view text);

}  // namespace cufit::formats
