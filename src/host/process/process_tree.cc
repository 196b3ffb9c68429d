// SPDX-License-Identifier: Apache-2.0
#include "host/process/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/format.h"
#include "base/number.h"

namespace cufit::host {
namespace {

constexpr size_t k_small_bytes = 1u << 16;

// Parents of all processes that this user can see.
std::map<pid_t, pid_t> process_parents() {
  std::map<pid_t, pid_t> parents;
  for (const std::string& name : names_in("/proc")) {
    const std::optional<uint64_t> pid = parse_uint(name);
    if (!pid) continue;
    const std::string stat = read_small("/proc/" + name + "/stat");
    // "PID (NAME) STATE PPID": the name may hold anything, brackets too.
    const size_t end = stat.rfind(')');
    if (end == std::string::npos || end + 4 >= stat.size()) continue;
    const std::vector<std::string_view> rest = split(std::string_view(stat).substr(end + 2), ' ');
    if (rest.size() < 2) continue;
    if (const std::optional<uint64_t> parent = parse_uint(rest[1]))
      parents[static_cast<pid_t>(*pid)] = static_cast<pid_t>(*parent);
  }
  return parents;
}

}  // namespace

std::vector<pid_t> processes_from(pid_t first) {
  const std::map<pid_t, pid_t> parents = process_parents();
  std::vector<pid_t> found;
  for (const auto& entry : parents) {
    std::set<pid_t> seen;
    pid_t pid = entry.first;
    while (pid > 1 && pid != first && seen.insert(pid).second) {
      const auto parent = parents.find(pid);
      pid = parent == parents.end() ? 0 : parent->second;
    }
    if (pid == first) found.push_back(entry.first);
  }
  return found;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  DIR* listing = opendir(folder.c_str());
  if (listing == nullptr) return names;
  while (const dirent* entry = readdir(listing)) names.emplace_back(entry->d_name);
  closedir(listing);
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_small(const std::string& path) {
  std::string out(k_small_bytes, '\0');
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return {};
  const ssize_t got = read(file, out.data(), out.size());
  close(file);
  out.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return out;
}

}  // namespace cufit::host
