// SPDX-License-Identifier: Apache-2.0
// A map of addresses or handles to what was charged for them: open addressing in pages of its own, in shards so that
// threads that allocate do not wait for each other. All bytes zero = empty.
#pragma once

#include "platform.h"

namespace guard {

struct Entry {
  uint64_t key;      // never 0
  uint64_t charged;  // bytes in the ledger
  uint64_t requested;
  void* context;   // dies with it; null: with the process
  uint8_t device;  // CUDA ordinal
  uint8_t kind;    // cufit_ring_kind
  uint8_t small;   // charged by pieces of 2 MiB (charge.h)
};

class Table {
 public:
  // False when there is no memory for it; the entry is then not known.
  bool insert(const Entry& entry);
  bool take(uint64_t key, Entry* out);
  // Takes one entry of `context` after another; false when there is none left.
  bool take_of_context(void* context, Entry* out);

 private:
  static constexpr size_t k_shards = 16;
  struct Shard {
    Lock lock;
    Entry* entries;
    size_t capacity;  // a power of two
    size_t count;
  };
  Shard shards_[k_shards];

  static uint64_t mix(uint64_t key);
  static bool grow(Shard& shard);
  static void put(Shard& shard, const Entry& entry);
  static void erase(Shard& shard, size_t at);
  Shard& shard_of(uint64_t key) { return shards_[mix(key) % k_shards]; }
};

}  // namespace guard
