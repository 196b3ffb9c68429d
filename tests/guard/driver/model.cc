// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include <algorithm>

namespace model {

thread_local Context* t_current;

Process& process() {
  static Process* one = new Process;
  return *one;
}

Device& device(int ordinal) {
  auto found = process().devices.find(ordinal);
  if (found != process().devices.end()) return found->second;
  Device& fresh = process().devices[ordinal];
  fresh.primary.device = ordinal, fresh.primary.primary = true;
  fresh.default_pool.device = ordinal;
  fresh.default_pool.step = card::gpu(ordinal).number("pool_step", 32 * k_mib);
  fresh.current_pool = &fresh.default_pool;
  process().pools.insert(&fresh.default_pool);
  return fresh;
}

uint64_t new_address(uint64_t bytes) {
  uint64_t at = process().next;
  process().next += (bytes + k_page) / k_page * k_page;
  return at;
}

bool take(int ordinal, uint64_t bytes) { return card::take(card::physical(ordinal), bytes); }
void give(int ordinal, uint64_t bytes) { card::give(card::physical(ordinal), bytes); }

bool resize(Pool& pool, uint64_t bytes) {
  if (pool.counts && bytes > pool.reserved && !take(pool.device, bytes - pool.reserved))
    return false;
  if (pool.counts && bytes < pool.reserved) give(pool.device, pool.reserved - bytes);
  pool.reserved = bytes;
  return true;
}

// Frees have happened; what lies above the threshold goes back, in whole pages.
void synchronize(int ordinal) {
  for (Pool* pool : process().pools) {
    if (pool->device != ordinal) continue;
    pool->used -= pool->waiting, pool->waiting = 0;
    uint64_t needed = (pool->used + k_page - 1) / k_page * k_page;
    resize(*pool, std::min(pool->reserved, std::max(needed, pool->threshold)));
  }
}

void end_context(Context& context) {
  Device& owner = device(context.device);
  for (auto at = process().blocks.begin(); at != process().blocks.end();) {
    const Block& block = at->second;
    if (block.context != &context) {
      ++at;
      continue;
    }
    if (!block.small && !block.managed) give(block.device, block.bytes);
    at = process().blocks.erase(at);
  }
  if (owner.small_bytes) give(context.device, (owner.small_bytes + k_page - 1) / k_page * k_page);
  owner.small_bytes = 0;
  for (auto at = process().arrays.begin(); at != process().arrays.end();) {
    if (at->second.context == &context) give(at->second.device, at->second.bytes);
    at = at->second.context == &context ? process().arrays.erase(at) : std::next(at);
  }
  give(context.device, card::gpu(context.device).number("context"));
  if (t_current == &context) t_current = nullptr;
}

}  // namespace model
