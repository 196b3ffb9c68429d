// SPDX-License-Identifier: Apache-2.0
#include "host/machine/memory_limit.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "host/files/file_facts.h"

namespace cufit::host {
namespace {

using formats::CgroupFolders;

// v1 writes "no limit" as LONG_MAX rounded down to a page; nobody has 4 EiB.
constexpr uint64_t k_no_limit_bytes = uint64_t{1} << 62;

const char* limit_name(const CgroupFolders& found) {
  return found.is_v2 ? "/memory.max" : "/memory.limit_in_bytes";
}

// A line "name number" of a folder's memory.stat.
std::optional<uint64_t> in_stat(const Host& host, const std::string& folder,
                                std::string_view name) {
  const Result<std::string> stat = host.read_file(folder + "/memory.stat", 1u << 16);
  if (!stat) return std::nullopt;
  for (const std::string_view line : split_lines(*stat)) {
    if (starts_with(line, name) && line.size() > name.size() && line[name.size()] == ' ')
      return parse_uint(trim(line.substr(name.size())));
  }
  return std::nullopt;
}

// v1 states the smallest limit of all ancestors, also of those that a container cannot see.
std::optional<uint64_t> limit_of_ancestors(const Host& host, const CgroupFolders& found) {
  if (found.is_v2) return std::nullopt;
  const auto bytes = in_stat(host, found.folders.front(), "hierarchical_memory_limit");
  return bytes && *bytes < k_no_limit_bytes ? bytes : std::nullopt;
}

// Files that were read and are not in use count as used until the kernel wants their room.
std::optional<uint64_t> used_in(const Host& host, const CgroupFolders& found,
                                const std::string& folder) {
  const Fact<uint64_t> used =
      number_fact(host, folder + (found.is_v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!used) return std::nullopt;
  const uint64_t files =
      in_stat(host, folder, found.is_v2 ? "inactive_file" : "total_inactive_file").value_or(0);
  return *used - std::min(*used, files);
}

}  // namespace

// The smallest limit on the way from this process's folder to the root is the one that counts.
Fact<uint64_t> memory_limit(const Host& host, const CgroupFolders& found) {
  const char* const k_name = limit_name(found);
  Fact<uint64_t> best =
      missing<uint64_t>(WhyNot::not_present, SourceKind::file, found.folders.front() + k_name);
  for (const std::string& folder : found.folders) {
    Fact<std::string> text = line_fact(host, folder + k_name);
    if (!text) {
      // The root folder of v2 has no such file; a folder that is there and unreadable may hide a
      // limit.
      if (!best && text.why != WhyNot::not_present)
        best = missing<uint64_t>(text.why, SourceKind::file, folder + k_name, text.note);
      continue;
    }
    std::optional<uint64_t> bytes = parse_uint(*text);
    if (bytes && *bytes < k_no_limit_bytes && (!best || *bytes < *best)) {
      best = known(*bytes, SourceKind::file, folder + k_name);
    }
  }
  const std::optional<uint64_t> all = limit_of_ancestors(host, found);
  if (all && (!best || *all < *best))
    return known(*all, SourceKind::file, found.folders.front() + "/memory.stat");
  return best;
}

// Each folder has a limit of its own, for all that is below it: the one that leaves least counts.
std::optional<uint64_t> left_of_memory_limits(const Host& host) {
  const Result<std::string> lines = host.read_file("/proc/self/cgroup", 1u << 20);
  const Result<std::string> mounts = host.read_file("/proc/self/mountinfo", 4u << 20);
  if (!lines || !mounts) return std::nullopt;
  const CgroupFolders found = formats::find_cgroup_folders(
      formats::parse_cgroup(*lines), formats::parse_mountinfo(*mounts), "memory");
  if (found.folders.empty()) return std::nullopt;
  std::optional<uint64_t> left;
  const auto add = [&](std::optional<uint64_t> limit, const std::string& folder) {
    if (!limit || *limit >= k_no_limit_bytes) return;
    const std::optional<uint64_t> used = used_in(host, found, folder);
    if (!used) return;
    left = std::min(left.value_or(UINT64_MAX), *limit - std::min(*limit, *used));
  };
  for (const std::string& folder : found.folders) {
    const Fact<uint64_t> limit = number_fact(host, folder + limit_name(found));
    add(limit ? std::optional<uint64_t>(*limit) : std::nullopt, folder);
  }
  add(limit_of_ancestors(host, found), found.folders.back());
  return left;
}

}  // namespace cufit::host
