// SPDX-License-Identifier: Apache-2.0
// A card with memory, for the guard's tests: what is allocated on it by all processes lies in a file (CUFIT_CARD), so that
// the tests know what was really granted, whatever the guard wrote down. The machine is described as for the other
// stand-ins (CUFIT_STANDIN, tests/standin/machine.h). Keys of a [gpu] used here: uuid, pci, memory, and
//
//   context = bytes              # what a context takes
//   pool_step = bytes            # by which a pool grows (32 MiB)
//   free_delay = 1               # a pool keeps freed blocks until a synchronisation
//   no_nvml_memory = 1           # NVML says nothing of memory (GB10: the host's and the GPU's are one)
//   compute_mode = 3             # NVML's number; display = 1
//   hidden = bytes               # held by processes that NVML does not list
//   [process] pid, name, used    # of a display; they hold memory beside all others
//   uncounted = 1                # the sum of all processes is not asked for, so that a call takes as long beside 300 others
// and of the machine:
//   cuda = 13000                 # newer entry points are not found
//   two_addresses = 1            # cuGetProcAddress gives other addresses than dlsym
//   future = 1                   # there is a cuMemAlloc of version 14000
//   own_lookup = 1               # cuInit looks its own functions up by dlsym
//   no_process_memory = 1        # NVML says nothing of processes
//   no_pool_attributes = 1
//   no_memory_limits = 1         # NVML does not limit cgroups
#pragma once

#include <cstdint>

#include "machine.h"

namespace card {

constexpr int k_devices = 8, k_processes = 512;

struct Process {
  uint32_t pid;
  uint32_t pad;
  uint64_t used[k_devices];
};

struct File {
  uint64_t lock;
  uint64_t peak[k_devices];  // highest sum that ever was
  uint64_t grants[k_devices];
  Process processes[k_processes];
};

File& file();

// The GPUs that this process sees, by ordinal: indices of the machine's (CUDA_VISIBLE_DEVICES).
int visible_count();
int physical(int ordinal);
standin::Gpu& gpu(int ordinal);

// Of the physical card; false when it is full (an uncounted one never is). No ordinals here: gpu().index.
bool take(int index, uint64_t bytes);
void give(int index, uint64_t bytes);
uint64_t used_by_all(int index);  // by processes that live
uint64_t memory(int index);

}  // namespace card
