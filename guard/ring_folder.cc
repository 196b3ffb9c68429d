// SPDX-License-Identifier: Apache-2.0
// A launch may start thousands of processes, and each leaves 256 KiB: the newest recordings of a folder stay, and those of
// all who live.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ring.h"

namespace guard {
namespace {

// PID-STARTTICKS.ring, or PID-STARTTICKS-N.ring of what came after an exec.
struct Recording {
  uint64_t ticks, number;
  uint32_t pid;
  char name[60];  // empty: judged already

  bool older_than(const Recording& other) const {
    return ticks != other.ticks ? ticks < other.ticks : number < other.number;
  }
};

struct Entry64 {  // linux_dirent64
  uint64_t inode;
  int64_t next;
  uint16_t bytes;
  uint8_t type;
  char name[];
};

// The digits at `*at`; false without one, or where they are no number of 64 bits.
bool read_digits(const char** at, uint64_t* value) {
  const char* start = *at;
  for (*value = 0; **at >= '0' && **at <= '9'; ++*at) {
    if (*value > UINT64_MAX / 10 - 1) return false;
    *value = *value * 10 + static_cast<uint64_t>(**at - '0');
  }
  return *at != start;
}

bool parse_name(const char* name, Recording* out) {
  if (strlen(name) >= sizeof out->name) return false;
  uint64_t pid = 0;
  const char* at = name;
  if (!read_digits(&at, &pid) || pid == 0 || pid > INT32_MAX || *at++ != '-' ||
      !read_digits(&at, &out->ticks))
    return false;
  out->number = 1;
  if (*at == '-' && !read_digits(&++at, &out->number)) return false;
  if (!equal(at, ".ring")) return false;
  out->pid = static_cast<uint32_t>(pid);
  copy_text(out->name, sizeof out->name, name);
  return true;
}

constexpr size_t k_most = 4096;

// Those of the folder, at most k_most; what is beyond waits for the next process.
size_t list(int folder, Recording* out) {
  alignas(Entry64) char buffer[8192];
  size_t count = 0;
  long got;
  while ((got = syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0) {
    for (long at = 0; at < got && count < k_most;) {
      auto* entry = reinterpret_cast<Entry64*>(buffer + at);
      if (parse_name(entry->name, &out[count])) ++count;
      at += entry->bytes;
    }
  }
  return count;
}

// A recording that its process left: of this pid namespace, where a number that is nobody's tells it. One whose number is
// another's by now stays until that one is gone, too.
bool is_left(int folder, const Recording& recording) {
  if (kill(static_cast<pid_t>(recording.pid), 0) == 0 || errno != ESRCH) return false;
  int file = openat(folder, recording.name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return false;
  cufit_ring_header head;
  constexpr size_t k_enough = offsetof(cufit_ring_header, started_ns);
  bool whole = pread(file, &head, k_enough, 0) == static_cast<long>(k_enough);
  close(file);
  return whole && memcmp(head.magic, CUFIT_RING_MAGIC, 8) == 0 && head.pid == recording.pid &&
         head.pid_namespace == own_pid_namespace();
}

void remove_oldest(int folder, Recording* all, size_t count, size_t surplus) {
  for (size_t judged = 0; surplus > 0 && judged < count; ++judged) {
    Recording* oldest = nullptr;
    for (size_t i = 0; i < count; ++i) {
      if (all[i].name[0] && (!oldest || all[i].older_than(*oldest))) oldest = &all[i];
    }
    if (is_left(folder, *oldest) && unlinkat(folder, oldest->name, 0) == 0) --surplus;
    oldest->name[0] = 0;
  }
}

}  // namespace

void make_room_for_ring(const char* path) {
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  constexpr size_t k_bytes = k_most * sizeof(Recording);
  if (auto* all = static_cast<Recording*>(map_pages(k_bytes))) {
    size_t count = list(folder, all);
    if (count >= CUFIT_RING_KEPT) remove_oldest(folder, all, count, count - CUFIT_RING_KEPT + 1);
    unmap_pages(all, k_bytes);
  }
  close(folder);
}

}  // namespace guard
