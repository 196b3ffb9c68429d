// SPDX-License-Identifier: Apache-2.0
#include "formats/system/cgroup.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"

namespace cufit::formats {
namespace {

// The kernel writes blank, tab, newline and backslash of a path as three octal digits: "\040".
std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    std::optional<uint64_t> code;
    if (text[i] == '\\' && i + 3 < text.size()) code = parse_uint(text.substr(i + 1, 3), 8);
    if (code && *code > 0 && *code < 256) {
      out += static_cast<char>(*code);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool lists_word(std::string_view list, std::string_view word) {
  for (std::string_view each : split(list, ',')) {
    if (each == word) return true;
  }
  return false;
}

bool has_controller(const CgroupLine& line, std::string_view controller) {
  return std::find(line.controllers.begin(), line.controllers.end(), controller) !=
         line.controllers.end();
}

// From the process's folder to the mount point. A path that is not below the mount's root ("/../.."
// or another container's) cannot be followed: then the mount point itself is what this process can
// see.
std::vector<std::string> climb(const Mount& mount, const std::string& path) {
  std::string below;
  if (mount.root == "/") {
    below = path;
  } else if (starts_with(path, mount.root) &&
             (path.size() == mount.root.size() || path[mount.root.size()] == '/')) {
    below = path.substr(mount.root.size());
  }
  if (contains(below + "/", "/../")) below.clear();
  std::vector<std::string> out;
  while (!below.empty() && below != "/") {
    out.push_back(mount.point + below);
    below.erase(below.find_last_of('/') == std::string::npos ? 0 : below.find_last_of('/'));
  }
  out.push_back(mount.point);
  return out;
}

}  // namespace

std::vector<CgroupLine> parse_cgroup(std::string_view text) {
  std::vector<CgroupLine> out;
  for (std::string_view line : split_lines(text)) {
    size_t first = line.find(':');
    size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    CgroupLine each;
    std::string_view names = line.substr(first + 1, second - first - 1);
    if (!names.empty()) {
      for (std::string_view name : split(names, ',')) each.controllers.emplace_back(name);
    }
    each.path = std::string(line.substr(second + 1));
    out.push_back(std::move(each));
  }
  return out;
}

std::vector<Mount> parse_mountinfo(std::string_view text) {
  std::vector<Mount> out;
  for (std::string_view line : split_lines(text)) {
    std::vector<std::string_view> words = split(line, ' ');
    auto dash = std::find(words.begin(), words.end(), std::string_view("-"));
    if (dash - words.begin() < 6 || words.end() - dash < 4) continue;
    out.push_back({unescape(words[3]), unescape(words[4]), std::string(dash[1]), unescape(dash[2]),
                   std::string(dash[3])});
  }
  return out;
}

const Mount* find_mount(const std::vector<Mount>& mounts, std::string_view point) {
  const Mount* found = nullptr;
  for (const Mount& mount : mounts) {
    if (mount.point == point) found = &mount;
  }
  return found;
}

unsigned long long tmpfs_bytes(std::string_view options) {
  for (std::string_view option : split(options, ',')) {
    if (!starts_with(option, "size=")) continue;
    option.remove_prefix(5);
    uint64_t unit = 1;
    if (ends_with(option, "k")) unit = 1u << 10;
    if (ends_with(option, "m")) unit = 1u << 20;
    if (ends_with(option, "g")) unit = 1u << 30;
    if (unit != 1) option.remove_suffix(1);
    std::optional<uint64_t> number = parse_uint(option);
    if (number && *number <= UINT64_MAX / unit) return *number * unit;
  }
  return 0;
}

CgroupFolders find_cgroup_folders(const std::vector<CgroupLine>& lines,
                                  const std::vector<Mount>& mounts, std::string_view controller) {
  // A controller belongs to one hierarchy. On a hybrid system v1 has memory and cpu, and the v2
  // tree has neither.
  const Mount* v1 = nullptr;
  const Mount* v2 = nullptr;
  for (const Mount& mount : mounts) {
    if (mount.type == "cgroup" && lists_word(mount.options, controller)) v1 = &mount;
    if (mount.type == "cgroup2" && !v2) v2 = &mount;
  }
  for (const CgroupLine& line : lines) {
    if (v1 && has_controller(line, controller)) return {false, climb(*v1, line.path)};
  }
  if (v1) return {false, {v1->point}};
  for (const CgroupLine& line : lines) {
    if (v2 && line.controllers.empty()) return {true, climb(*v2, line.path)};
  }
  if (v2) return {true, {v2->point}};
  return {};
}

}  // namespace cufit::formats
