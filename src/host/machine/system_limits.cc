// SPDX-License-Identifier: Apache-2.0
#include "host/files/file_facts.h"
#include "host/machine/memory_limit.h"
#include "host/machine/system_parts.h"

namespace cufit::host {
namespace {

using formats::CgroupFolders;
using formats::CgroupLine;
using formats::Mount;

struct Quota {
  std::string path;
  double cpus = 0;  // 0 = no limit in this folder
};

// v2: "200000 100000" or "max 100000" in cpu.max; v1: two files, -1 = no limit.
Quota quota_of(const Host& host, const std::string& folder, bool is_v2) {
  Quota out;
  out.path = folder + (is_v2 ? "/cpu.max" : "/cpu.cfs_quota_us");
  Fact<std::string> text = line_fact(host, out.path);
  if (!text) return out;
  std::optional<uint64_t> quota, period;
  if (is_v2) {
    std::vector<std::string_view> words = split(*text, ' ');
    quota = parse_uint(words[0]);
    period = words.size() > 1 ? parse_uint(words[1]) : std::optional<uint64_t>(100000);
  } else {
    Fact<uint64_t> period_fact = number_fact(host, folder + "/cpu.cfs_period_us");
    quota = parse_uint(*text);
    period = period_fact.value;
  }
  if (quota && period && *quota > 0 && *period > 0) {
    out.cpus = static_cast<double>(*quota) / static_cast<double>(*period);
  }
  return out;
}

Fact<double> cpu_limit(const Host& host, const CgroupFolders& found) {
  Fact<double> best;
  for (const std::string& folder : found.folders) {
    Quota quota = quota_of(host, folder, found.is_v2);
    if (quota.cpus > 0 && (!best || quota.cpus < *best))
      best = known(quota.cpus, SourceKind::file, quota.path);
    if (!best && best.source.detail.empty())
      best = missing<double>(WhyNot::not_present, SourceKind::file, quota.path);
  }
  return best;
}

void read_cgroups(const Host& host, const std::vector<Mount>& mounts, facts::SystemFacts& system) {
  const char* const k_path = "/proc/self/cgroup";
  Result<std::string> text = host.read_file(k_path, 1u << 20);
  if (!text) {
    system.cgroup = missing_file<std::string>(text.error(), k_path);
    system.memory_limit_bytes = missing_file<uint64_t>(text.error(), k_path);
    system.cpu_limit = missing_file<double>(text.error(), k_path);
    return;
  }
  std::vector<CgroupLine> lines = formats::parse_cgroup(*text);
  CgroupFolders memory = formats::find_cgroup_folders(lines, mounts, "memory");
  CgroupFolders cpu = formats::find_cgroup_folders(lines, mounts, "cpu");
  const std::string unmounted = "the hierarchy is not mounted here, so a limit cannot be seen";
  if (memory.folders.empty()) {
    system.cgroup =
        missing<std::string>(WhyNot::not_present, SourceKind::file, "/proc/self/mountinfo");
    system.memory_limit_bytes =
        missing<uint64_t>(WhyNot::not_supported, SourceKind::file, k_path, unmounted);
  } else {
    system.cgroup =
        known<std::string>(memory.is_v2 ? "v2" : "v1", SourceKind::file, memory.folders.back());
    system.memory_limit_bytes = memory_limit(host, memory);
  }
  system.cpu_limit = cpu.folders.empty() ? missing<double>(WhyNot::not_supported, SourceKind::file,
                                                           k_path, unmounted)
                                         : cpu_limit(host, cpu);
}

void read_shm(const Host& host, const std::vector<Mount>& mounts, facts::SystemFacts& system) {
  const char* const k_path = "/dev/shm";
  Result<uint64_t> bytes = host.filesystem_bytes(k_path);
  const Mount* mount = formats::find_mount(mounts, k_path);
  if (bytes && *bytes > 0) {
    system.shm_bytes = known(*bytes, SourceKind::file, k_path);
  } else if (uint64_t size = mount ? formats::tmpfs_bytes(mount->options) : 0; size > 0) {
    system.shm_bytes = known(size, SourceKind::file, "/proc/self/mountinfo (/dev/shm)");
  } else if (!bytes) {
    system.shm_bytes = missing_file<uint64_t>(bytes.error(), k_path);
  } else {
    system.shm_bytes = missing<uint64_t>(WhyNot::not_supported, SourceKind::file, k_path,
                                         "the filesystem has no size");
  }
}

void read_shm_free(const Host& host, facts::SystemFacts& system) {
  const char* const k_path = "/dev/shm";
  Result<uint64_t> bytes = host.filesystem_free_bytes(k_path);
  system.shm_free_bytes = bytes ? known(*bytes, SourceKind::file, k_path)
                                : missing_file<uint64_t>(bytes.error(), k_path);
}

// "Max locked memory         8388608              8388608              bytes"; the first number is
// the soft limit.
void read_memlock(const Host& host, facts::SystemFacts& system) {
  const char* const k_path = "/proc/self/limits";
  constexpr std::string_view k_name = "Max locked memory";
  Result<std::string> text = host.read_file(k_path, 1u << 16);
  if (!text) {
    system.memlock_bytes = missing_file<uint64_t>(text.error(), k_path);
    return;
  }
  for (std::string_view line : split_lines(*text)) {
    if (!starts_with(line, k_name)) continue;
    std::string_view soft = trim(line.substr(k_name.size()));
    soft = soft.substr(0, soft.find(' '));
    std::optional<uint64_t> bytes =
        soft == "unlimited" ? std::optional<uint64_t>(UINT64_MAX) : parse_uint(soft);
    if (!bytes) break;
    system.memlock_bytes = known(*bytes, SourceKind::file, k_path);
    return;
  }
  system.memlock_bytes =
      missing<uint64_t>(WhyNot::malformed, SourceKind::file, k_path, "no line on locked memory");
}

// "0-15,32" -> 17; 0 when it is no such list.
uint64_t count_of_list(std::string_view list) {
  constexpr uint64_t k_max_cpus = 1u << 20;
  uint64_t count = 0;
  for (std::string_view range : split(trim(list), ',')) {
    size_t dash = range.find('-');
    std::optional<uint64_t> first = parse_uint(range.substr(0, dash));
    std::optional<uint64_t> last =
        dash == std::string_view::npos ? first : parse_uint(range.substr(dash + 1));
    if (!first || !last || *last < *first || *last >= k_max_cpus) return 0;
    count += *last - *first + 1;
  }
  return count;
}

void read_cpus(const Host& host, facts::SystemFacts& system) {
  const char* const k_path = "/proc/self/status";
  constexpr std::string_view k_name = "Cpus_allowed_list:";
  Result<std::string> text = host.read_file(k_path, 1u << 16);
  if (!text) {
    system.cpus = missing_file<uint64_t>(text.error(), k_path);
    return;
  }
  for (std::string_view line : split_lines(*text)) {
    if (!starts_with(line, k_name)) continue;
    uint64_t count = count_of_list(line.substr(k_name.size()));
    if (count == 0) break;
    system.cpus = known(count, SourceKind::file, k_path);
    return;
  }
  system.cpus =
      missing<uint64_t>(WhyNot::malformed, SourceKind::file, k_path, "no list of allowed CPUs");
}

}  // namespace

void read_system_limits(const Host& host, const std::vector<Mount>& mounts,
                        facts::SystemFacts& system) {
  read_cgroups(host, mounts, system);
  read_shm(host, mounts, system);
  read_shm_free(host, system);
  read_memlock(host, system);
  read_cpus(host, system);
}

}  // namespace cufit::host
