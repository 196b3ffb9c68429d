// SPDX-License-Identifier: Apache-2.0
#include "host/quota/cgroup_path.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "formats/system/cgroup.h"

namespace cufit::host {
namespace {

const char* const k_cgroup_root = "/sys/fs/cgroup";
constexpr size_t k_most_cgroups = 20000;
constexpr int k_most_cgroup_depth = 16;

bool is_cgroup(const Host& host, const std::string& folder) {
  return host.exists(folder + "/cgroup.procs");
}

bool has_parts_up(const std::string& path) {
  for (std::string_view part : split(path, '/'))
    if (part == "..") return true;
  return false;
}

// The id of a cgroup's name: what stands before ".scope" behind the last "-", or all of it.
std::string_view id_of_name(std::string_view name) {
  if (ends_with(name, ".scope")) name.remove_suffix(6);
  const size_t dash = name.rfind('-');
  return dash == std::string_view::npos ? name : name.substr(dash + 1);
}

struct ContainerSearch {
  const Host& host;
  const std::string& id;
  size_t seen = 0;
  std::vector<std::string> found;

  void look(const std::string& folder, int depth) {
    const Result<std::vector<std::string>> names = host.list(folder);
    if (!names) return;
    for (const std::string& name : *names) {
      if (seen >= k_most_cgroups) return;
      const std::string path = folder + "/" + name;
      const Result<FileStatus> status = host.status(path);
      if (!status || !status->is_directory) continue;
      ++seen;
      // What a container has below itself (its own systemd) is reached by its parent's limit.
      if (starts_with(id_of_name(name), id))
        found.push_back(path);
      else if (depth < k_most_cgroup_depth)
        look(path, depth + 1);
    }
  }
};

}  // namespace

Result<std::string> cgroup_of_path(const Host& host, const std::string& path) {
  std::string full = path;
  while (full.size() > 1 && full.back() == '/') full.pop_back();
  if (!starts_with(full, std::string(k_cgroup_root) + "/"))
    full = std::string(k_cgroup_root) + (starts_with(full, "/") ? "" : "/") + full;
  if (has_parts_up(full) || full == k_cgroup_root || !is_cgroup(host, full))
    return fail(Code::usage,
                format("`--cgroup {}`: no such cgroup of version 2 below {}", path, k_cgroup_root));
  return full;
}

Result<std::string> cgroup_of_process(const Host& host, uint64_t pid) {
  const Result<std::string> text = host.read_file(format("/proc/{}/cgroup", pid), 64u << 10);
  if (!text) return fail(Code::not_found, format("`--pid {}`: no such process", pid));
  for (const formats::CgroupLine& line : formats::parse_cgroup(*text)) {
    if (!line.controllers.empty() || line.path == "/" || line.path.empty()) continue;
    const std::string full = k_cgroup_root + line.path;
    if (!has_parts_up(full) && is_cgroup(host, full)) return full;
  }
  return fail(
      Code::unsupported,
      format("`--pid {}`: the process is in no cgroup of version 2 that can be limited", pid));
}

Result<std::string> cgroup_of_container(const Host& host, const std::string& id) {
  const bool is_id =
      id.size() >= 12 && id.size() <= 64 && std::all_of(id.begin(), id.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      });
  if (!is_id)
    return fail(Code::usage, format("`--container {}`: 12 to 64 digits of its id are expected, as "
                                    "`docker ps --no-trunc` shows them",
                                    id));
  ContainerSearch search{host, id, 0, {}};
  search.look(k_cgroup_root, 0);
  if (search.found.empty())
    return fail(Code::not_found, format("`--container {}`: no running container of this id", id));
  if (search.found.size() > 1)
    return fail(Code::usage, format("`--container {}`: several: {}", id, join(search.found, ", ")));
  return search.found[0];
}

}  // namespace cufit::host
