// SPDX-License-Identifier: Apache-2.0
#include "platform.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/stat.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace guard {
namespace {

__thread uint32_t t_thread_id;

uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

void Lock::lock() {
  if (compare_set(word_, 0u, 1u)) return;
  for (int spins = 0; spins < 100; ++spins) {
    if (load(word_) == 0 && compare_set(word_, 0u, 1u)) return;
  }
  while (__atomic_exchange_n(&word_, 2u, __ATOMIC_SEQ_CST) != 0)
    syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0);
}

void Lock::unlock() {
  if (__atomic_exchange_n(&word_, 0u, __ATOMIC_SEQ_CST) == 2)
    syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

SavedErrno::SavedErrno() : value_(errno) {}
SavedErrno::~SavedErrno() { errno = value_; }

void* map_pages(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

void* map_wiped_pages(size_t bytes, bool* wiped) {
  void* at = map_pages(bytes);
  *wiped = at && madvise(at, bytes, MADV_WIPEONFORK) == 0;
  return at;
}

void unmap_pages(void* at, size_t bytes) {
  if (at) munmap(at, bytes);
}

bool file_facts(int descriptor, FileFacts* out) {
  struct statx facts;
  memset(&facts, 0, sizeof facts);
  if (syscall(SYS_statx, descriptor, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &facts) != 0)
    return false;
  out->bytes = facts.stx_size, out->inode = facts.stx_ino, out->owner = facts.stx_uid;
  out->mode = facts.stx_mode;
  out->device_major = facts.stx_dev_major, out->device_minor = facts.stx_dev_minor;
  return true;
}

long read_text(const char* path, char* out, size_t size) {
  out[0] = 0;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  long filled = 0;
  while (filled < static_cast<long>(size) - 1) {
    long got = read(file, out + filled, size - 1 - static_cast<size_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    filled += got;
  }
  close(file);
  out[filled] = 0;
  return filled;
}

uint64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }
uint64_t coarse_ns() { return clock_ns(CLOCK_MONOTONIC_COARSE); }
uint64_t realtime_ns() { return clock_ns(CLOCK_REALTIME); }

uint32_t thread_id() {
  if (t_thread_id == 0) t_thread_id = static_cast<uint32_t>(syscall(SYS_gettid));
  return t_thread_id;
}

void forget_thread_id() { t_thread_id = 0; }

uint64_t start_ticks(uint32_t pid) {
  char path[64], text[1024];
  char* end = path + sizeof path;
  append(append_number(append(path, end, "/proc/"), end, pid), end, "/stat");
  if (read_text(path, text, sizeof text) <= 0) return 0;
  // "PID (name) S ...": the name may hold anything, so fields are counted from the last parenthesis (field 3).
  const char* at = strrchr(text, ')');
  if (!at) return 0;
  int field = 2;
  while (*at && field < 22) {
    if (*at++ == ' ') ++field;
  }
  uint64_t ticks = 0;
  for (; *at >= '0' && *at <= '9'; ++at) ticks = ticks * 10 + static_cast<uint64_t>(*at - '0');
  return ticks;
}

uint64_t own_pid_namespace() {
  char text[64];
  long length = readlink("/proc/self/ns/pid", text, sizeof text - 1);  // "pid:[4026531836]"
  uint64_t inode = 0;
  for (long i = 0; i < length; ++i) {
    if (text[i] >= '0' && text[i] <= '9') inode = inode * 10 + static_cast<uint64_t>(text[i] - '0');
  }
  return inode;
}

int move_high(int descriptor) {
  rlimit limit{};
  long highest = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<long>(limit.rlim_cur) : 256;
  if (highest > 1024) highest = 1024;
  int high = fcntl(descriptor, F_DUPFD_CLOEXEC, static_cast<int>(highest > 64 ? highest - 48 : 3));
  if (high < 0) return descriptor;
  close(descriptor);
  return high;
}

bool equal(const char* a, const char* b) { return strcmp(a, b) == 0; }
bool starts_with(const char* text, const char* start) {
  return strncmp(text, start, strlen(start)) == 0;
}

const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

void copy_text(char* out, size_t size, const char* text) {
  size_t length = strnlen(text, size - 1);
  memcpy(out, text, length);
  out[length] = 0;
}

char* append(char* at, char* end, const char* text) {
  while (at < end - 1 && *text) *at++ = *text++;
  *at = 0;
  return at;
}

char* append_number(char* at, char* end, uint64_t number) {
  char digits[24];
  char* digit = digits + sizeof digits - 1;
  *digit = 0;
  do {
    *--digit = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number);
  return append(at, end, digit);
}

}  // namespace guard
