// SPDX-License-Identifier: Apache-2.0
#include "table.h"

namespace guard {

// The finalizer of MurmurHash3: addresses differ in their middle bits alone.
uint64_t Table::mix(uint64_t key) {
  key ^= key >> 33;
  key *= 0xff51afd7ed558ccdu;
  key ^= key >> 33;
  key *= 0xc4ceb9fe1a85ec53u;
  return key ^ key >> 33;
}

void Table::put(Shard& shard, const Entry& entry) {
  size_t at = (mix(entry.key) >> 8) & (shard.capacity - 1);
  while (shard.entries[at].key != 0) at = (at + 1) & (shard.capacity - 1);
  shard.entries[at] = entry;
  ++shard.count;
}

bool Table::grow(Shard& shard) {
  // Few at first: what a program with few blocks touches stays in the nearest cache.
  size_t capacity = shard.capacity ? shard.capacity * 2 : 16;
  auto* entries = static_cast<Entry*>(map_pages(capacity * sizeof(Entry)));
  if (!entries) return false;
  Shard bigger{};
  bigger.entries = entries, bigger.capacity = capacity;
  for (size_t i = 0; i < shard.capacity; ++i) {
    if (shard.entries[i].key != 0) put(bigger, shard.entries[i]);
  }
  unmap_pages(shard.entries, shard.capacity * sizeof(Entry));
  shard.entries = entries, shard.capacity = capacity;
  return true;
}

// Moves back what a gap would hide (Knuth, 6.4, algorithm R).
void Table::erase(Shard& shard, size_t at) {
  size_t mask = shard.capacity - 1;
  for (size_t next = (at + 1) & mask; shard.entries[next].key != 0; next = (next + 1) & mask) {
    size_t home = (mix(shard.entries[next].key) >> 8) & mask;
    if (((next - home) & mask) < ((next - at) & mask)) continue;
    shard.entries[at] = shard.entries[next];
    at = next;
  }
  shard.entries[at] = Entry{};
  --shard.count;
}

bool Table::insert(const Entry& entry) {
  Shard& shard = shard_of(entry.key);
  Held held(shard.lock);
  if (shard.count * 2 >= shard.capacity && !grow(shard)) return false;
  put(shard, entry);
  return true;
}

bool Table::take(uint64_t key, Entry* out) {
  Shard& shard = shard_of(key);
  Held held(shard.lock);
  if (key == 0 || shard.capacity == 0) return false;
  size_t mask = shard.capacity - 1;
  for (size_t at = (mix(key) >> 8) & mask; shard.entries[at].key != 0; at = (at + 1) & mask) {
    if (shard.entries[at].key != key) continue;
    *out = shard.entries[at];
    erase(shard, at);
    return true;
  }
  return false;
}

bool Table::take_of_context(void* context, Entry* out) {
  for (Shard& shard : shards_) {
    Held held(shard.lock);
    for (size_t at = 0; at < shard.capacity; ++at) {
      if (shard.entries[at].key == 0 || shard.entries[at].context != context) continue;
      *out = shard.entries[at];
      erase(shard, at);
      return true;
    }
  }
  return false;
}

}  // namespace guard
