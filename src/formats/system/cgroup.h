// SPDX-License-Identifier: Apache-2.0
// /proc/self/cgroup and /proc/self/mountinfo (proc(5), cgroups(7)): where this process's memory and
// CPU limits lie, and which mounts show that it is in a container. Used by the system probe; reads
// no limit itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cufit::formats {

// One line of /proc/<pid>/cgroup: "9:memory:/user.slice" (v1) or "0::/user.slice" (v2).
struct CgroupLine {
  std::vector<std::string> controllers;  // empty for v2
  std::string path;
};

// One line of mountinfo:
//   31 23 0:28 /root /mount/point rw,relatime shared:1 - tmpfs source rw,size=64k
struct Mount {
  std::string root;  // what of the filesystem is mounted; not "/" for bind mounts
  std::string point;
  std::string type;
  std::string source;
  std::string options;  // of the filesystem ("super options")
};

std::vector<CgroupLine> parse_cgroup(std::string_view text);
std::vector<Mount> parse_mountinfo(std::string_view text);

// The last mount on exactly `point` (it hides the ones below); null without one.
const Mount* find_mount(const std::vector<Mount>& mounts, std::string_view point);
// "size=64k" in tmpfs options -> bytes; 0 when there is none.
unsigned long long tmpfs_bytes(std::string_view options);

// The folders that hold the limits of `controller`, this process's own first, up to the mount
// point. Empty when the controller is not mounted.
struct CgroupFolders {
  bool is_v2 = false;
  std::vector<std::string> folders;
};
CgroupFolders find_cgroup_folders(const std::vector<CgroupLine>& lines,
                                  const std::vector<Mount>& mounts, std::string_view controller);

}  // namespace cufit::formats
