// SPDX-License-Identifier: Apache-2.0
// All that the guard knows of this process. It lies in pages that a forked child finds zeroed: the child starts with no
// slot, no table and no lock that a thread of its parent may have held.
#pragma once

#include "driver.h"
#include "ledger.h"
#include "ring.h"
#include "table.h"

namespace guard {

constexpr int k_most_devices = 16;
constexpr int k_most_pools = 256;
constexpr int k_most_contexts = 64;

struct DeviceState {  // by CUDA ordinal
  uint32_t known;     // 2: the rest is filled in
  int row;            // of the domain
  uint8_t uuid[16];
  char pci[16];
  uint32_t is_mig;
  // All that is charged for this device by this process, and the part of it that is decided: the high water is of that,
  // and while the two differ a call of the driver has not returned. In the ledger, or in `unlimited` without a row.
  uint64_t *charged, *granted;
  uint64_t unlimited[2];
  uint64_t overhead;     // the part of `charged` that contexts are
  uint64_t small_bytes;  // of allocations below 1 MiB, which the driver packs (charge.h)
  Lock small;
  uint64_t graph_bytes;  // charged for what graphs reserve
  uint64_t graph_ticket, graph_applied;
  Lock graph;
  uint32_t graphs_seen;
  uint32_t primary;  // 0 no, 1 being retained, 2 its context is charged
  Handle primary_context;
  uint32_t contexts;  // charged ones
  uint64_t reconciled_ns;
  void* nvml_device;
  uint32_t nvml_tried;
};

enum class PoolKind : uint8_t { device, free_of_charge, gone };

struct PoolState {
  Handle pool;  // null: this entry is free
  PoolKind kind;
  int device;
  uint64_t charged;
  uint64_t ticket, applied;  // readings that overtake each other: only a newer one counts
};

struct ContextState {
  Handle context;
  int device;
};

struct VmmState;

struct State {
  uint32_t phase;      // 0 new (or forked), 1 being made, 2 ready
  uint32_t check_pid;  // the kernel does not wipe pages: compare pids
  uint32_t pid;
  LedgerState ledger;
  RingState ring;
  DeviceState devices[k_most_devices];
  Table allocations, arrays, spills;
  uint32_t capturing;      // streams that are being captured
  uint64_t spilled;        // of --spill SIZE, now
  uint64_t spilled_total;  // and ever
  Lock pools_lock;
  PoolState pools[k_most_pools];
  Lock contexts_lock;
  ContextState contexts[k_most_contexts];
  Lock vmm_lock;
  VmmState* vmm;
  Lock nvml_lock;
};

// This process's state; null where hooks go straight through. Made when the first hook is called.
State* state();

// The same where it is made already; a question alone makes no files.
State* state_if_made();

// The device behind an ordinal, looked up once; null for an ordinal that is none, or past the 16th.
DeviceState* device_state(State& all, Device ordinal);
// All that this process sees, so that the black box of a refusal has the limit of each.
void know_all_devices(State& all);

}  // namespace guard
