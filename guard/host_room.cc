// SPDX-License-Identifier: Apache-2.0
// A GPU that is full must not become a host that kills processes: a tenth of the host's memory stays free, and a
// tenth of what the cgroup may have.
#include "spill.h"

#include <string.h>

namespace guard {
namespace {

bool number_at(const char* text, uint64_t* out) {
  while (*text == ' ' || *text == '\t') ++text;
  if (*text < '0' || *text > '9') return false;
  uint64_t value = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    if (value > UINT64_MAX / 10 - 1) return false;
    value = value * 10 + static_cast<uint64_t>(*text - '0');
  }
  *out = value;
  return true;
}

// "MemAvailable:   1234 kB" of /proc/meminfo, in bytes.
bool line_of(const char* text, const char* name, uint64_t* out) {
  const char* at = strstr(text, name);
  if (!at || !number_at(at + strlen(name), out)) return false;
  *out *= 1024;
  return true;
}

uint64_t room_of_machine() {
  char text[4096];
  uint64_t total = 0, available = 0;
  if (read_text("/proc/meminfo", text, sizeof text) < 0 || !line_of(text, "MemTotal:", &total) ||
      !line_of(text, "MemAvailable:", &available))
    return 0;
  return minus_saturating(available, total / 10);
}

long read_in(const char* folder, const char* name, char* out, size_t size) {
  char path[700];
  char* end = path + sizeof path;
  append(append(append(path, end, folder), end, "/"), end, name);
  return read_text(path, out, size);
}

bool read_number(const char* folder, const char* name, uint64_t* out) {
  char text[64];
  return read_in(folder, name, text, sizeof text) >= 0 && number_at(text, out);
}

// What the page cache holds can be taken back.
uint64_t cache_of_group(const char* folder, const char* active, const char* inactive) {
  char text[8192];
  uint64_t a = 0, b = 0;
  if (read_in(folder, "memory.stat", text, sizeof text) < 0) return 0;
  const char* at = strstr(text, active);
  if (at) number_at(at + strlen(active), &a);
  at = strstr(text, inactive);
  if (at) number_at(at + strlen(inactive), &b);
  return add_saturating(a, b);
}

struct Hierarchy {
  char line[16];  // of /proc/self/cgroup, in front of the path
  char root[24];
  char most[24], now[24], active[24], inactive[24];
};
// The unified one, and that of version 1. In the latter a limit that is none is 2^63 less a page.
constexpr Hierarchy k_unified = {"0::/",           "/sys/fs/cgroup", "memory.max",
                                 "memory.current", "\nactive_file ", "\ninactive_file "};
constexpr Hierarchy k_first = {":memory:/",
                               "/sys/fs/cgroup/memory",
                               "memory.limit_in_bytes",
                               "memory.usage_in_bytes",
                               "\ntotal_active_file ",
                               "\ntotal_inactive_file "};

// Of one level; UINT64_MAX without a limit ("max").
uint64_t room_of_group(const Hierarchy& kind, const char* folder) {
  uint64_t most = 0, now = 0;
  if (!read_number(folder, kind.most, &most) || !read_number(folder, kind.now, &now) ||
      most >= uint64_t{1} << 62)
    return UINT64_MAX;
  now = minus_saturating(now, cache_of_group(folder, kind.active, kind.inactive));
  return minus_saturating(minus_saturating(most, now), most / 10);
}

uint64_t room_of_groups(const Hierarchy& kind, const char* groups) {
  char folder[600];
  const char* at = strstr(groups, kind.line);
  if (!at) return UINT64_MAX;
  char* end = append(folder, folder + sizeof folder, kind.root);
  char* root = end;
  for (at += strlen(kind.line) - 1; *at && *at != '\n' && end + 1 < folder + sizeof folder;)
    *end++ = *at++;
  *end = 0;
  uint64_t least = UINT64_MAX;
  while (end > root) {
    least = smaller(least, room_of_group(kind, folder));
    while (end > root && *--end != '/') continue;
    *end = 0;
  }
  // In a container with a cgroup namespace the root has the limit.
  return smaller(least, room_of_group(kind, folder));
}

}  // namespace

uint64_t host_room() {
  SavedErrno saved;
  char groups[8192];
  if (read_text("/proc/self/cgroup", groups, sizeof groups) < 0) return room_of_machine();
  return smaller(room_of_machine(),
                 smaller(room_of_groups(k_unified, groups), room_of_groups(k_first, groups)));
}

}  // namespace guard
