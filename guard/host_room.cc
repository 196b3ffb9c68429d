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

bool read_number(const char* folder, const char* name, uint64_t* out) {
  char path[600], text[64];
  append(append(append(path, path + sizeof path, folder), path + sizeof path, "/"),
         path + sizeof path, name);
  return read_text(path, text, sizeof text) >= 0 && number_at(text, out);
}

// Of one level of the unified hierarchy; UINT64_MAX without a limit ("max"). What the page cache holds can be taken back.
uint64_t room_of_group(const char* folder) {
  uint64_t most = 0, now = 0;
  if (!read_number(folder, "memory.max", &most) || !read_number(folder, "memory.current", &now))
    return UINT64_MAX;
  return minus_saturating(minus_saturating(most, now), most / 10);
}

uint64_t room_of_groups() {
  char text[1024], folder[512];
  if (read_text("/proc/self/cgroup", text, sizeof text) < 0) return UINT64_MAX;
  const char* at = strstr(text, "0::/");
  if (!at) return UINT64_MAX;
  char* end = append(folder, folder + sizeof folder, "/sys/fs/cgroup");
  char* root = end;
  for (at += 3; *at && *at != '\n' && end + 1 < folder + sizeof folder;) *end++ = *at++;
  *end = 0;
  uint64_t least = UINT64_MAX;
  while (end > root) {
    least = smaller(least, room_of_group(folder));
    while (end > root && *--end != '/') continue;
    *end = 0;
  }
  // In a container with a cgroup namespace the root has the limit.
  return smaller(least, room_of_group(folder));
}

}  // namespace

uint64_t host_room() {
  SavedErrno saved;
  return smaller(room_of_machine(), room_of_groups());
}

}  // namespace guard
