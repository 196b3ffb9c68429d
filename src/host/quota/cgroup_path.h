// SPDX-License-Identifier: Apache-2.0
// Which cgroup of the unified hierarchy a process or a container is in, as NVML's memory limits name it: the full path of
// the folder below /sys/fs/cgroup.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "host/files/host.h"

namespace cufit::host {

// A folder that is there: "/sys/fs/cgroup/a/b", "/a/b" or "a/b" of it. Error{usage} else.
Result<std::string> cgroup_of_path(const Host& host, const std::string& path);
// Error{not_found}: no such process; Error{unsupported}: it is in no unified hierarchy, or in its root.
Result<std::string> cgroup_of_process(const Host& host, uint64_t pid);
// By its id as `docker ps` shows it, 12 letters or more, or all 64: the cgroup whose name ends in it (docker-ID.scope,
// libpod-ID.scope, cri-containerd-ID.scope, docker/ID). Error{not_found}: none, Error{usage}: no id, or several.
Result<std::string> cgroup_of_container(const Host& host, const std::string& id);

}  // namespace cufit::host
