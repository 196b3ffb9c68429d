// SPDX-License-Identifier: Apache-2.0
#include "pools.h"

#include "charge.h"

namespace guard {
namespace {

void note_size(State& all, uint8_t kind, Device device, Handle pool, uint64_t bytes) {
  Event event{kind, CUFIT_RING_GRANTED};
  event.device = device, event.address = reinterpret_cast<uint64_t>(pool), event.bytes = bytes;
  event.used = charged(all, device);
  record(all.ring, event);
}

// The difference goes to the ledger; what it grew by.
uint64_t settle(State& all, Device device, uint64_t before, uint64_t now, Undecided* undecided) {
  if (now > before) add_undecided(all, device, now - before);
  if (now < before) take_undecided(all, device, before - now);
  const int64_t change = static_cast<int64_t>(now - before);
  if (undecided)
    undecided->device = device, undecided->bytes += change;
  else
    grant(all, device, change);
  return minus_saturating(now, before);
}

PoolState* entry_of(State& all, Handle pool) {
  for (PoolState& entry : all.pools) {
    if (pool && entry.pool == pool) return &entry;
  }
  return nullptr;
}

// The pools of a device one after another, without the lock while the driver is asked.
template <class Act>
void each_pool(State& all, Device device, Act act) {
  for (PoolState& entry : all.pools) {
    Handle pool = nullptr;
    {
      Held held(all.pools_lock);
      if (entry.pool && entry.kind == PoolKind::device && entry.device == device) pool = entry.pool;
    }
    if (pool) act(pool);
  }
}

}  // namespace

bool find_pool(State& all, Handle pool, PoolState* out) {
  Held held(all.pools_lock);
  PoolState* entry = entry_of(all, pool);
  if (entry) *out = *entry;
  return entry != nullptr;
}

bool know_pool(State& all, Handle pool, Device device, PoolKind kind) {
  Held held(all.pools_lock);
  if (!pool) return false;
  PoolState* entry = entry_of(all, pool);
  for (PoolState& free : all.pools) {
    if (entry) break;
    if (!free.pool && free.charged == 0) entry = &free;
  }
  if (!entry) return false;
  if (entry->pool == pool && entry->kind != PoolKind::gone) return true;
  // A handle of a destroyed pool, given to a new one: what the old one held is not asked for any more.
  uint64_t old = entry->charged;
  *entry = PoolState{pool, kind, device, 0, entry->ticket + 1, entry->ticket};
  if (old) subtract(all, device, old);
  return true;
}

uint64_t refresh_pool(State& all, Handle pool, Undecided* undecided) {
  const Driver& cuda = driver();
  uint64_t ticket = 0, bytes = 0;
  {
    Held held(all.pools_lock);
    PoolState* entry = entry_of(all, pool);
    if (!entry || entry->kind != PoolKind::device || !cuda.pool_attribute) return 0;
    ticket = ++entry->ticket;
  }
  if (cuda.pool_attribute(pool, k_pool_reserved, &bytes) != k_ok) return 0;
  uint64_t before = 0;
  Device device = -1;
  {
    Held held(all.pools_lock);
    PoolState* entry = entry_of(all, pool);
    if (!entry || entry->kind != PoolKind::device || entry->applied >= ticket) return 0;
    before = entry->charged, device = entry->device;
    entry->charged = bytes, entry->applied = ticket;
  }
  if (before == bytes) return 0;
  uint64_t grown = settle(all, device, before, bytes, undecided);
  note_size(all, CUFIT_RING_KIND_POOL_SIZE, device, pool, bytes);
  return grown;
}

void forget_pool(State& all, Handle pool, uint64_t still_used) {
  uint64_t before = 0, now = 0;
  Device device = -1;
  {
    Held held(all.pools_lock);
    PoolState* entry = entry_of(all, pool);
    if (!entry) return;
    before = entry->charged, device = entry->device;
    now = smaller(still_used, before);
    if (now == 0)
      *entry = PoolState{};
    else
      entry->kind = PoolKind::gone, entry->charged = now;
  }
  settle(all, device, before, now, nullptr);
  note_size(all, CUFIT_RING_KIND_POOL_SIZE, device, pool, now);
}

void refresh_pools(State& all, Device device) {
  each_pool(all, device, [&](Handle pool) { refresh_pool(all, pool, nullptr); });
}

void trim_pools(State& all, Device device) {
  auto* trim = real_as<Result(Handle, size_t)>(hook_cuMemPoolTrimTo);
  if (!trim) return;
  each_pool(all, device, [&](Handle pool) {
    trim(pool, 0);
    refresh_pool(all, pool, nullptr);
  });
}

void drop_gone_pools(State& all, Device device) {
  uint64_t given_back = 0;
  {
    Held held(all.pools_lock);
    for (PoolState& entry : all.pools) {
      if (!entry.pool || entry.kind != PoolKind::gone || entry.device != device) continue;
      given_back += entry.charged;
      entry = PoolState{};
    }
  }
  subtract(all, device, given_back);
}

void refresh_graphs(State& all, Device ordinal) {
  DeviceState* device = device_state(all, ordinal);
  const Driver& cuda = driver();
  if (!device || !load(device->graphs_seen) || !cuda.graph_attribute) return;
  uint64_t ticket = 0, bytes = 0, before = 0;
  {
    Held held(device->graph);
    ticket = ++device->graph_ticket;
  }
  if (cuda.graph_attribute(ordinal, k_graph_reserved, &bytes) != k_ok) return;
  {
    Held held(device->graph);
    if (device->graph_applied >= ticket) return;
    before = device->graph_bytes;
    device->graph_bytes = bytes, device->graph_applied = ticket;
  }
  if (before == bytes) return;
  settle(all, ordinal, before, bytes, nullptr);
  note_size(all, CUFIT_RING_KIND_GRAPH_SIZE, ordinal, nullptr, bytes);
}

void trim_graphs(State& all, Device ordinal) {
  DeviceState* device = device_state(all, ordinal);
  auto* trim = real_as<Result(Device)>(hook_cuDeviceGraphMemTrim);
  if (!device || !load(device->graphs_seen) || !trim) return;
  trim(ordinal);
  refresh_graphs(all, ordinal);
}

}  // namespace guard
