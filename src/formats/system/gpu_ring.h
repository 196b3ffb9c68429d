// SPDX-License-Identifier: Apache-2.0
// The black box of a process under the guard (base/abi/gpu_ring.h has the bytes): what it asked of the driver for memory, what
// it got, and the state at each refusal. The process may have been killed in the middle of a store: events whose number is
// not that of their place are left out and counted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cufit::formats {

enum class RingKind {
  none,
  alloc,
  managed,
  vmm,
  pool,
  pool_size,
  array,
  graph,
  graph_size,
  context,
  overhead
};
enum class RingWhat { none, granted, released, refused, driver_refused, spilled };

struct RingEvent {
  uint64_t number = 0;  // of all events ever
  uint64_t ns = 0;      // CLOCK_REALTIME
  RingKind kind = RingKind::none;
  RingWhat what = RingWhat::none;
  int device = -1;  // CUDA ordinal in that process; -1 = none
  uint64_t address = 0;
  uint64_t bytes = 0;       // as asked; for sizes and overhead: the new one
  uint64_t used_bytes = 0;  // charged to the process on the device afterwards
  uint32_t tid = 0;
  int result = 0;      // CUresult
  std::string module;  // the file that called; empty: not known
};

struct RingRefusal {
  uint64_t number = 0;
  uint64_t ns = 0;
  RingKind kind = RingKind::none;
  RingWhat what = RingWhat::none;  // refused or driver_refused
  int device = -1;
  uint64_t asked_bytes = 0;
  uint64_t own_bytes = 0;
  uint64_t domain_bytes = 0;
  uint64_t limit_bytes = 0;
  uint64_t swept_bytes = 0;
  uint64_t trimmed_bytes = 0;
  bool card_asked = false;
  uint64_t card_free_bytes = 0;
  uint32_t processes = 0;
  uint32_t tid = 0;
  std::string module;
  uint64_t caller_offset = 0;
};

struct RingDevice {
  int ordinal = 0;
  std::string uuid, pci;
  bool limited = false;
  uint64_t limit_bytes = 0, total_bytes = 0;
  uint64_t used_bytes = 0, peak_bytes = 0, overhead_bytes = 0;
  bool told = false;  // the program asked cuMemGetInfo
  uint64_t told_free_bytes = 0, told_total_bytes = 0;
  uint64_t grants = 0, refusals = 0, driver_refusals = 0;
};

struct GpuRing {
  uint32_t pid = 0;
  uint64_t start_ticks = 0;
  uint64_t started_ns = 0;  // CLOCK_REALTIME
  std::string program, guard_version, foreign;
  std::string share;  // of --share; empty: none
  uint32_t driver_version = 0;  // 13000
  uint64_t arguments_hash = 0;
  bool quota = false;          // a domain was in force
  bool nvml = false;           // NVML said what the process held
  bool domain_failed = false;  // a domain was named and could not be used
  std::vector<std::string> unknown;
  std::vector<RingDevice> devices;
  uint64_t event_count = 0;       // ever
  uint64_t torn_events = 0;       // of those in the file
  std::vector<RingEvent> events;  // the last 4,096, oldest first
  uint64_t refusal_count = 0;
  std::vector<RingRefusal> refusals;  // the last 16, oldest first
};

// Is this such a file? By its first eight bytes.
bool is_gpu_ring(std::string_view bytes);
// Errors: no such file, another version, cut short.
Result<GpuRing> parse_gpu_ring(std::string_view bytes);

}  // namespace cufit::formats
