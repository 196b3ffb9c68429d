// SPDX-License-Identifier: Apache-2.0
#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "objects.h"
#include "settings.h"

extern "C" const char cufit_guard_version[];

namespace guard {
namespace {

uint64_t hash_of_arguments() {
  char text[4096];
  long length = read_text("/proc/self/cmdline", text, sizeof text);
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (long i = 0; i < length; ++i)
    hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3u;
  return hash;
}

// A write past RLIMIT_FSIZE is SIGXFSZ.
bool may_write() {
  rlimit most{};
  return getrlimit(RLIMIT_FSIZE, &most) == 0 &&
         (most.rlim_cur == RLIM_INFINITY || most.rlim_cur >= CUFIT_RING_BYTES);
}

// Blocks for the whole file now: a store into a hole of a full file system would be SIGBUS in the user's program.
int make_file(const char* path) {
  int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return -1;
  char zeros[4096] = {};
  for (size_t done = 0; done < CUFIT_RING_BYTES;) {
    long put = write(file, zeros, sizeof zeros);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      close(file);
      unlink(path);
      return -1;
    }
    done += static_cast<size_t>(put);
  }
  return file;
}

void fill_header(cufit_ring_header& header, uint32_t pid, uint64_t ticks, uint32_t flags) {
  header.version = CUFIT_RING_VERSION;
  header.header_bytes = CUFIT_RING_HEADER_BYTES;
  header.event_bytes = CUFIT_RING_EVENT_BYTES;
  header.event_count = CUFIT_RING_EVENTS;
  header.pid = pid;
  header.start_ticks = ticks;
  header.pid_namespace = own_pid_namespace();
  header.started_ns = realtime_ns();
  header.started_monotonic_ns = monotonic_ns();
  header.arguments_hash = hash_of_arguments();
  header.flags = flags;
  long length = read_text("/proc/self/comm", header.program, sizeof header.program);
  if (length > 0 && header.program[length - 1] == '\n') header.program[length - 1] = 0;
  copy_text(header.guard_version, sizeof header.guard_version, cufit_guard_version);
  memcpy(header.magic, CUFIT_RING_MAGIC, 8);
}

// The row of `modules` for a caller; made when the module is new.
uint8_t module_of(RingState& ring, const void* caller, uint64_t* offset) {
  *offset = 0;
  if (!caller) return CUFIT_RING_NO_MODULE;
  // A page is looked up once: callers come from few places.
  struct Cached {
    const void* ring;  // a forked child has another
    uintptr_t begin, end, base;
    uint8_t row;
  };
  static __thread Cached t_last;
  uintptr_t at = reinterpret_cast<uintptr_t>(caller);
  if (t_last.ring == ring.header && at >= t_last.begin && at < t_last.end) {
    *offset = at - t_last.base;
    return t_last.row;
  }
  Object object;
  if (!object_of(caller, &object)) return CUFIT_RING_NO_MODULE;
  cufit_ring_header& header = *ring.header;
  Held held(ring.modules);
  uint32_t row = 0;
  while (row < header.module_count && header.modules[row].base != object.base) ++row;
  if (row == CUFIT_RING_MODULES) return CUFIT_RING_NO_MODULE;
  if (row == header.module_count) {
    const char* path = *object.path ? object.path : header.program;
    size_t length = strlen(path), room = sizeof header.modules[row].name - 1;
    copy_text(header.modules[row].name, room + 1, length > room ? path + length - room : path);
    header.modules[row].base = object.base;
    store(header.module_count, row + 1);
  }
  t_last = {ring.header, object.begin, object.end, object.base, static_cast<uint8_t>(row)};
  *offset = at - object.base;
  return static_cast<uint8_t>(row);
}

}  // namespace

constexpr uint64_t k_left_to_others = 24 << 20;

bool open_ring(RingState& ring, const char* folder, uint32_t flags) {
  if (!may_write()) return false;
  make_room_for_ring(folder);
  char path[640];
  char* end = path + sizeof path;
  uint32_t pid = static_cast<uint32_t>(getpid());
  uint64_t ticks = start_ticks(pid);
  char* at = append_number(append(append(path, end, folder), end, "/"), end, pid);
  at = append_number(append(at, end, "-"), end, ticks);
  char* number_at = at;
  append(at, end, ".ring");
  int file = make_file(path);
  // The program before an exec has that name already.
  for (uint64_t n = 2; file < 0 && errno == EEXIST && n < 100; ++n) {
    append(append_number(append(number_at, end, "-"), end, n), end, ".ring");
    file = make_file(path);
  }
  if (file < 0) return false;
  // In a container /dev/shm has 64 MiB, and whoever finds it full there is killed.
  struct statvfs room {};
  if (fstatvfs(file, &room) == 0 &&
      static_cast<uint64_t>(room.f_bavail) * room.f_frsize < k_left_to_others) {
    close(file);
    unlink(path);
    return false;
  }
  // Its pages now: else every seventieth request of the first round would be a page fault.
  void* pages =
      mmap(nullptr, CUFIT_RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  close(file);
  if (pages == MAP_FAILED) return false;
  auto* header = static_cast<cufit_ring_header*>(pages);
  fill_header(*header, pid, ticks, flags);
  store(ring.header, header);
  return true;
}

void record(RingState& ring, const Event& event) {
  cufit_ring_header* header = load(ring.header);
  if (!header) return;
  uint64_t offset = 0;
  uint8_t module = module_of(ring, event.caller, &offset);
  auto* events = reinterpret_cast<cufit_ring_event*>(reinterpret_cast<uint8_t*>(header) +
                                                     CUFIT_RING_HEADER_BYTES);
  // Counted first: a counter waits for all stores before it, and those into the event go to memory that is far.
  cufit_ring_device* device = ring_device(ring, event.device);
  if (device && event.what == CUFIT_RING_GRANTED) fetch_add(device->grants, uint64_t{1});
  uint64_t n = fetch_add(header->head, uint64_t{1});
  cufit_ring_event& at = events[n % CUFIT_RING_EVENTS];
  store_release(at.sequence, 0u);
  __atomic_thread_fence(__ATOMIC_RELEASE);  // not whole from here on
  at.ns = monotonic_ns();
  at.address = event.address, at.bytes = event.bytes, at.used = event.used;
  at.tid = thread_id();
  at.result = static_cast<uint16_t>(event.result);
  at.kind = event.kind, at.what = event.what;
  at.device = event.device < 0 ? CUFIT_RING_NO_DEVICE : static_cast<uint8_t>(event.device);
  at.module = module;
  store_release(at.sequence, static_cast<uint32_t>(n + 1));
  if (device) store_release(device->used_bytes, event.used);
  // The line that the next event ends in.
  __builtin_prefetch(&events[(n + 1) % CUFIT_RING_EVENTS].tid, 1);
}

void record_refusal(RingState& ring, const Refusal& refusal) {
  cufit_ring_header* header = load(ring.header);
  if (!header) return;
  uint64_t n = fetch_add(header->refusal_head, uint64_t{1});
  cufit_ring_refusal& at = header->refusals[n % CUFIT_RING_REFUSALS];
  store(at.sequence, 0u);
  at.ns = monotonic_ns();
  at.asked_bytes = refusal.asked, at.own_bytes = refusal.own, at.domain_bytes = refusal.domain;
  at.limit_bytes = refusal.limit, at.swept_bytes = refusal.swept;
  at.trimmed_bytes = refusal.trimmed, at.card_free_bytes = refusal.card_free;
  at.module = module_of(ring, refusal.caller, &at.caller_offset);
  at.tid = thread_id();
  at.kind = refusal.kind, at.what = refusal.what;
  at.device = refusal.device < 0 ? CUFIT_RING_NO_DEVICE : static_cast<uint8_t>(refusal.device);
  at.processes = refusal.processes;
  store(at.sequence, static_cast<uint32_t>(n + 1));
  if (cufit_ring_device* device = ring_device(ring, refusal.device)) {
    bool quota = refusal.what == CUFIT_RING_REFUSED;
    fetch_add(quota ? device->refusals : device->driver_refusals, uint64_t{1});
  }
}

cufit_ring_device* ring_device(RingState& ring, int device) {
  cufit_ring_header* header = load(ring.header);
  if (!header || device < 0 || device >= static_cast<int>(CUFIT_RING_DEVICES)) return nullptr;
  return &header->devices[device];
}

}  // namespace guard
