// SPDX-License-Identifier: Apache-2.0
#include "host/process/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
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
constexpr size_t k_most_variables_bytes = 1u << 20;  // of one process, looked at

std::string variables_of_process(const std::string& process) {
  const int file = open(("/proc/" + process + "/environ").c_str(), O_RDONLY | O_CLOEXEC);
  std::string text;
  if (file < 0) return text;
  char part[16384];
  while (text.size() < k_most_variables_bytes) {
    const ssize_t got = read(file, part, sizeof part);
    if (got <= 0) break;
    text.append(part, static_cast<size_t>(got));
  }
  close(file);
  return text;
}

// Parents of all processes that this user can see.
std::map<pid_t, pid_t> process_parents() {
  std::map<pid_t, pid_t> parents;
  for (const std::string& name : names_in("/proc")) {
    const std::optional<uint64_t> pid = parse_uint(name);
    if (!pid) continue;
    const ProcessState process = process_state(static_cast<pid_t>(*pid));
    if (process.state != 0) parents[static_cast<pid_t>(*pid)] = process.parent;
  }
  return parents;
}

}  // namespace

// Fields 3, 4 and 22 of stat; the name before them may hold blanks and brackets.
ProcessState process_state(pid_t pid) {
  char text[1024];  // the name has 16 bytes, 64 in a kernel thread
  const std::string path = pid == 0 ? "/proc/self/stat" : format("/proc/{}/stat", pid);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t got = file < 0 ? 0 : read(file, text, sizeof text);
  if (file >= 0) close(file);
  const std::string_view stat(text, got > 0 ? static_cast<size_t>(got) : 0);
  const size_t end = stat.rfind(')');
  if (end == std::string_view::npos) return {};
  const std::vector<std::string_view> fields = split(stat.substr(end + 1), ' ');
  if (fields.size() < 21 || fields[1].size() != 1) return {};
  ProcessState out;
  out.state = fields[1][0];
  out.parent = static_cast<pid_t>(parse_uint(fields[2]).value_or(0));
  out.start_ticks = parse_uint(fields[20]).value_or(0);
  return out;
}

uint64_t pid_namespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

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

std::set<std::string> values_in_processes(const std::string& variable) {
  const std::string start = variable + "=";
  std::set<std::string> out;
  for (const std::string& name : names_in("/proc")) {
    if (!parse_uint(name)) continue;
    const std::string text = variables_of_process(name);
    for (const std::string_view each : split(text, '\0'))
      if (starts_with(each, start)) out.emplace(each.substr(start.size()));
  }
  return out;
}

std::string program_of_line(pid_t pid, const std::string& line) {
  const std::string words = read_small(format("/proc/{}/cmdline", pid));
  const std::string first = words.substr(0, words.find('\0'));
  return !first.empty() && starts_with(line, first) ? first : line.substr(0, line.find(' '));
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
