// SPDX-License-Identifier: Apache-2.0
// Pages of host memory that the GPU reads and writes over its link, mapped into its address space by the calls of
// virtual memory. Two users: `--spill optimizer` asks for them through torch (cufit_spill_alloc), and `--spill SIZE` gets
// them instead of a second refusal (ladder.cc).
#pragma once

#include "state.h"

namespace guard {

// Whether this driver can do it on this device, by trial: HOST (driver 580, CUDA 13.0) or HOST_NUMA (535, CUDA 12.2).
bool can_spill(Device device);

// In whole pages of 2 MiB. `emergency`: a share of --spill SIZE. False where the driver or the host has no room; nothing is left then.
bool map_host(State& all, Device device, uint64_t bytes, const void* caller, bool emergency,
              Pointer* out);
// After its context has done its work. False for an address that map_host did not give.
bool unmap_host(State& all, Pointer at, const void* caller, uint64_t* bytes);

// Of --spill SIZE: at the second refusal of one size on one thread, while the process has room left in SIZE.
bool spill_refused(State& all, Device device, uint64_t bytes, const void* caller, Pointer* out);
// What spill_refused gave, by cuMemFree.
bool free_spilled(State& all, Pointer at, const void* caller);
void forget_refusal(Device device, uint64_t bytes);  // it was granted
// With their context they are gone.
void bury_spilled(State& all, Handle context, const void* caller);
void remember_refusal(Device device, uint64_t bytes);

// Bytes of host memory that may still be taken without making the machine or this process's cgroup run out.
uint64_t host_room();

}  // namespace guard
