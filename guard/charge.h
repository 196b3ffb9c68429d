// SPDX-License-Identifier: Apache-2.0
// One request for memory: it is charged before the driver is asked, and given back unless it is kept. At the limit
// comes the ladder of ladder.cc; what is refused is refused as the driver does it, with CUDA_ERROR_OUT_OF_MEMORY,
// for on no other answer does torch free its cache and ask again.
#pragma once

#include "state.h"

namespace guard {

constexpr uint64_t k_mib = 1024 * 1024;
// The driver backs large allocations with pages of 2 MiB and packs smaller ones into such.
constexpr uint64_t k_page = 2 * k_mib;
constexpr uint64_t k_packed_below = k_mib;

class Charge {
 public:
  // A device without a state (an ordinal past the 16th) is neither charged nor recorded.
  Charge(State& all, Device device, uint8_t kind, uint64_t requested, const void* caller);
  ~Charge();
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

  // One of these, once. false: refuse; it is counted and recorded already.
  bool take(uint64_t bytes);
  bool take_block(uint64_t bytes);  // a cuMemAlloc of that size: packed or in pages of 2 MiB
  bool try_take(uint64_t bytes);    // without the ladder, and without a record of the refusal

  // The driver said yes, and says now that it takes so much (no small block).
  void correct(uint64_t bytes);
  // What was taken stays until the entry is released. Recorded at the end, when the entry is where it belongs.
  Entry keep(uint64_t key, void* context);
  // What was taken was for the time of the call alone; a record of the request stays.
  void give_back();
  void note(uint64_t key);
  // The driver said no, though the quota had room.
  void driver_refused(Result result);

  void allow_trim(bool yes) { trim_ = yes; }
  // Of --spill SIZE: a second refusal may be answered with host memory, at `*out`; then nothing was taken.
  void allow_spill(Pointer* out) { spill_to_ = out; }
  bool spill_instead();
  bool spilled() const { return spilled_; }

 private:
  friend bool climb(Charge&, uint64_t);
  friend void refuse(Charge&, uint64_t);
  State& all_;
  Device device_;
  uint8_t kind_;
  uint64_t requested_;
  const void* caller_;
  uint64_t taken_ = 0, key_ = 0;
  Pointer* spill_to_ = nullptr;
  uint64_t undecided_ = 0;  // charged for it and not granted yet
  bool small_ = false, kept_ = false, counted_ = false, trim_ = true, spilled_ = false;
};

// The ladder: does it make room for `bytes`, and are they charged? And the end of it.
bool climb(Charge& charge, uint64_t bytes);
void refuse(Charge& charge, uint64_t bytes);

// Charged, and not granted: what is asked for, and what a pool grew by for it.
bool try_add(State& all, Device device, uint64_t bytes);
void add_undecided(State& all, Device device, uint64_t bytes);
void take_undecided(State& all, Device device, uint64_t bytes);
// Decided: the program has it. What is granted is in the high water of domain and ring.
void grant(State& all, Device device, int64_t bytes);
void add_fact(State& all, Device device, uint64_t bytes);  // exists already
void subtract(State& all, Device device, uint64_t bytes);
// Of an entry that was taken out of its table; records it.
void release(State& all, const Entry& entry, const void* caller);
void set_overhead(State& all, Device device, uint64_t bytes);
// Asks NVML what this process holds in all; at most every 2 s, or where `now` every 5 ms.
void reconcile(State& all, Device device, bool now);
uint64_t charged(State& all, Device device);
// What is charged beyond contexts. False while a call of the driver is under way: charges whose memory is not there yet would
// make the rest look smaller than it is.
bool listed_bytes(const DeviceState& device, uint64_t* bytes);

}  // namespace guard
