// SPDX-License-Identifier: Apache-2.0
// What the guard needs of libc and the kernel. It lives in other people's processes: it allocates by
// mmap alone, takes no lock of theirs, changes no descriptor, signal, locale or umask, and leaves errno as
// it was. Nothing here is newer than glibc 2.28.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define GUARD_EXPORT extern "C" __attribute__((visibility("default")))

namespace guard {

template <class T>
T load(const T& from) {
  return __atomic_load_n(&from, __ATOMIC_SEQ_CST);
}
template <class T>
void store(T& to, T value) {
  __atomic_store_n(&to, value, __ATOMIC_SEQ_CST);
}
// After all that this thread stored before; for what only readers of a file look at, where the full barrier of store()
// would cost every allocation 10 ns.
template <class T>
void store_release(T& to, T value) {
  __atomic_store_n(&to, value, __ATOMIC_RELEASE);
}
template <class T>
T fetch_add(T& to, T value) {
  return __atomic_fetch_add(&to, value, __ATOMIC_SEQ_CST);
}
template <class T>
T fetch_sub(T& to, T value) {
  return __atomic_fetch_sub(&to, value, __ATOMIC_SEQ_CST);
}
template <class T>
bool compare_set(T& at, T expected, T wanted) {
  return __atomic_compare_exchange_n(&at, &expected, wanted, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}
template <class T>
void raise_to(T& at, T value) {
  for (T now = load(at); now < value; now = load(at)) {
    if (compare_set(at, now, value)) return;
  }
}

inline uint64_t add_saturating(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }
inline uint64_t minus_saturating(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }
inline uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
// UINT64_MAX where it does not fit.
inline uint64_t round_up(uint64_t bytes, uint64_t unit) {
  uint64_t more = add_saturating(bytes, unit - 1);
  return more == UINT64_MAX ? UINT64_MAX : more / unit * unit;
}

// A mutex of this process, a futex (Drepper, "Futexes Are Tricky", the second mutex). All bytes zero = free. Held for
// table look-ups only, never across a call of the driver.
class Lock {
 public:
  void lock();
  void unlock();

 private:
  uint32_t word_;
};

class Held {
 public:
  explicit Held(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~Held() { lock_.unlock(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  Lock& lock_;
};

class SavedErrno {
 public:
  SavedErrno();
  ~SavedErrno();
  SavedErrno(const SavedErrno&) = delete;
  SavedErrno& operator=(const SavedErrno&) = delete;

 private:
  int value_;
};

// Zeroed pages; null when there are none.
void* map_pages(size_t bytes);
// Pages that a forked child finds zeroed (Linux 4.14); `*wiped` says whether the kernel does that.
void* map_wiped_pages(size_t bytes, bool* wiped);
void unmap_pages(void* at, size_t bytes);

struct FileFacts {
  uint64_t bytes = 0, inode = 0;
  uint32_t owner = 0, mode = 0, device_major = 0, device_minor = 0;
};
bool file_facts(int descriptor, FileFacts* out);  // statx: fstat is GLIBC_2.33
// Up to `size` - 1 bytes of a file of /proc, ended with 0; the number read, -1 on failure.
long read_text(const char* path, char* out, size_t size);
uint64_t monotonic_ns();
uint64_t coarse_ns();  // the same clock as it was at the last tick (4 ms), at a fifth of the price
uint64_t realtime_ns();
uint32_t thread_id();     // remembered, for it is a system call ...
void forget_thread_id();  // ... and another in a forked child
uint64_t start_ticks(
    uint32_t pid);  // field 22 of /proc/PID/stat; 0 = no such process, or not readable
uint64_t own_pid_namespace();
// An open descriptor at a number that programs do not use by habit, closed on exec.
int move_high(int descriptor);

// Texts: `out` is always ended with 0.
bool equal(const char* a, const char* b);
bool starts_with(const char* text, const char* start);
const char* base_name(const char* path);
void copy_text(char* out, size_t size, const char* text);
char* append(char* at, char* end, const char* text);
char* append_number(char* at, char* end, uint64_t number);

}  // namespace guard
