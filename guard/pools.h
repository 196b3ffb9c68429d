// SPDX-License-Identifier: Apache-2.0
// Memory that the driver keeps for later: pools of cuMemAllocAsync and what graphs reserve. What is charged is what
// the driver says that they hold, never a sum of requests.
#pragma once

#include "state.h"

namespace guard {

void refresh_pools(State& all, Device device);
void trim_pools(State& all, Device device);
// Destroyed pools whose blocks may still live: nobody can say, so at the limit they count no longer.
void drop_gone_pools(State& all, Device device);
void refresh_graphs(State& all, Device device);
void trim_graphs(State& all, Device device);

// What a reading changed in the ledger and is not granted yet.
struct Undecided {
  Device device = -1;
  int64_t bytes = 0;
};
// How much the pool grew since the last reading; 0 where it shrank or is not known. With `undecided` the caller says
// grant() of it, once the request that it grew for is decided; null: it is granted at once.
uint64_t refresh_pool(State& all, Handle pool, Undecided* undecided);
// False when there is no room for another pool: it stays uncharged.
bool know_pool(State& all, Handle pool, Device device, PoolKind kind);
bool find_pool(State& all, Handle pool, PoolState* out);
void forget_pool(State& all, Handle pool, uint64_t still_used);

}  // namespace guard
