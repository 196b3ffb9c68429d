// SPDX-License-Identifier: Apache-2.0
#include "host/process/memory_kills.h"

#include <charconv>
#include <string_view>
#include <vector>

#include "base/format.h"

namespace cufit::host {
namespace {

constexpr size_t k_limit = 256u << 10;

// The number behind `name` and blanks or a colon at the begin of a line.
std::optional<uint64_t> number_of(std::string_view text, std::string_view name) {
  for (std::string_view line : split_lines(text)) {
    if (!starts_with(line, name)) continue;
    line.remove_prefix(name.size());
    if (line.empty() || (line[0] != ' ' && line[0] != ':')) continue;
    while (!line.empty() && (line[0] == ' ' || line[0] == ':')) line.remove_prefix(1);
    uint64_t number = 0;
    const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error == std::errc() && stop != line.data()) return number;
  }
  return std::nullopt;
}

// Where the counter may lie, the nearest first: in a container the path of /proc/self/cgroup may be
// the host's, and its own group is then mounted as the root.
std::vector<std::string> counter_files(std::string_view cgroup) {
  std::vector<std::string> out;
  for (std::string_view line : split_lines(cgroup)) {
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    std::string path(line.substr(second + 1));
    if (path == "/") path.clear();
    if (controllers.empty()) {
      out.push_back("/sys/fs/cgroup" + path + "/memory.events");
      out.push_back("/sys/fs/cgroup/memory.events");
    } else if (("," + std::string(controllers) + ",").find(",memory,") != std::string::npos) {
      out.push_back("/sys/fs/cgroup/memory" + path + "/memory.oom_control");
      out.push_back("/sys/fs/cgroup/memory/memory.oom_control");
    }
  }
  return out;
}

}  // namespace

facts::MemoryKills read_memory_kills(const Host& host) {
  facts::MemoryKills out;
  if (const auto cgroup = host.read_head("/proc/self/cgroup", k_limit)) {
    for (const std::string& file : counter_files(*cgroup)) {
      const auto text = host.read_head(file, k_limit);
      if (!text) continue;
      out.cgroup = number_of(*text, "oom_kill");
      out.cgroup_file = file;
      if (out.cgroup) break;
    }
  }
  if (const auto text = host.read_head("/proc/vmstat", k_limit))
    out.machine = number_of(*text, "oom_kill");
  return out;
}

std::optional<facts::HostMemory> read_host_memory(const Host& host) {
  const auto text = host.read_head("/proc/meminfo", 1024);
  if (!text) return std::nullopt;
  const auto total = number_of(*text, "MemTotal"), available = number_of(*text, "MemAvailable");
  if (!total || !available || *total == 0) return std::nullopt;
  constexpr uint64_t k_most = UINT64_MAX >> 10;
  if (*total > k_most || *available > k_most) return std::nullopt;
  return facts::HostMemory{*total << 10, *available << 10};
}

}  // namespace cufit::host
