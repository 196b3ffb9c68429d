// SPDX-License-Identifier: Apache-2.0
// The black box (base/abi/gpu_ring.h): stores into mapped pages, no system call but for a caller that is seen for
// the first time and for a refusal.
#pragma once

#include "base/abi/gpu_ring.h"
#include "platform.h"

namespace guard {

struct RingState {
  cufit_ring_header* header;  // null: nothing is recorded
  Lock modules;
};

// Removes the oldest recordings of processes that are gone, so that with one more there are CUFIT_RING_KEPT.
void make_room_for_ring(const char* folder);
// Makes FOLDER/<pid>-<start ticks>.ring.
bool open_ring(RingState& ring, const char* folder, uint32_t flags);

struct Event {
  uint8_t kind, what;
  int device = -1;
  uint64_t address = 0, bytes = 0, used = 0;
  int result = 0;
  const void* caller = nullptr;
};
void record(RingState& ring, const Event& event);

struct Refusal {
  uint8_t kind, what;
  int device;
  uint64_t asked, own, domain, limit, swept, trimmed, card_free;
  const void* caller;
  uint32_t processes;
};
void record_refusal(RingState& ring, const Refusal& refusal);

// The row of a device; null where nothing is recorded.
cufit_ring_device* ring_device(RingState& ring, int device);

}  // namespace guard
