// SPDX-License-Identifier: Apache-2.0
// Every allocation of one device's trace as one row: where, how large, from which event to which,
// allocated by whom. What explain, compare and the view count with. Event numbers are those of the
// trace (Recording::events); row numbers are the block numbers of the Program, so what a replay
// says about a block can be put beside its row.
//
// allocated_bytes of PyTorch at the moment after event e is the sum of block_bytes over rows with
// is_allocated(row, e); active_bytes adds those with is_pending(row, e).
#pragma once

#include <cstdint>
#include <vector>

#include "memory/snapshot/snapshot.h"
#include "memory/replay/what_if.h"

namespace cufit::analysis {

constexpr uint32_t k_before = UINT32_MAX;  // alloc_event: lived already when the trace began
constexpr uint32_t k_never = UINT32_MAX;   // of the two frees

// 48 bytes. Rows of one trace are ordered by alloc_event, those with k_before first, by address.
struct Lifetime {
  uint64_t address = 0;
  uint64_t requested_bytes = 0;  // 0: a block of the beginning whose request nobody wrote down
  uint64_t block_bytes = 0;      // what the allocator gave; see Lifetimes::sizes_are_exact
  uint32_t alloc_event = k_before;
  uint32_t free_requested = k_never;  // no longer allocated from this event on
  uint32_t free_completed = k_never;  // until here it waits for other streams
  uint32_t stack = memory::k_no_stack;
  uint32_t context = 0;  // of Snapshot::contexts: stream, category, compile context
  uint16_t pool = 0;     // 0: the default pool, else as in the Recording
  bool has_context = true;
};
static_assert(sizeof(Lifetime) == 48);

struct Lifetimes {
  std::vector<Lifetime> rows;
  uint32_t initial = 0;  // so many rows lived when the trace began
  uint32_t events = 0;   // of the trace
  // The last event at which the program asked for memory. What is freed later, an exception
  // unwinding or the program ending, tells nothing of what it was for.
  uint32_t work_end = 0;
  // False: some block_bytes are the rounded request, where the model left the recording.
  bool sizes_are_exact = false;
};

// In two parts: all but the sizes needs no verification. Of the parts the second is given the
// lifetimes that the first made of the same program.
Lifetimes lifetimes_without_sizes(const memory::Snapshot& snapshot,
                                  const memory::VerifiedRecording& verified);
void add_sizes(Lifetimes& lifetimes, const memory::VerifiedRecording& verified);
// Linear in the trace. `verified` is of this snapshot; the second form is for those who have none,
// and asks the model for the sizes of blocks first.
Lifetimes lifetimes_of(const memory::Snapshot& snapshot, const memory::VerifiedRecording& verified);
Lifetimes lifetimes_of(const memory::Snapshot& snapshot, uint32_t device,
                       const memory::Recording& recording, const memory::Program& program);

inline bool is_born(const Lifetime& row, uint32_t event) {
  return row.alloc_event == k_before || row.alloc_event <= event;
}
// Not freed while the program worked.
inline bool is_kept(const Lifetime& row, const Lifetimes& lifetimes) {
  return row.free_requested > lifetimes.work_end;
}
// After `event`.
inline bool is_allocated(const Lifetime& row, uint32_t event) {
  return is_born(row, event) && row.free_requested > event;
}
inline bool is_pending(const Lifetime& row, uint32_t event) {
  return is_born(row, event) && row.free_requested <= event && row.free_completed > event;
}

}  // namespace cufit::analysis
