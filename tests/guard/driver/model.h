// SPDX-License-Identifier: Apache-2.0
// What one process has of the described cards. Addresses and handles are numbers; there is no memory behind them.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "card.h"

namespace model {

constexpr int k_ok = 0, k_invalid = 1, k_out_of_memory = 2, k_not_initialized = 3,
              k_invalid_device = 101, k_invalid_context = 201, k_invalid_handle = 400,
              k_not_found = 500, k_not_supported = 801;
constexpr uint64_t k_mib = 1024 * 1024, k_page = 2 * k_mib;

struct Pool {
  int device = 0;
  bool counts = true, destroyed = false;
  uint64_t step = 32 * k_mib, threshold = 0;
  uint64_t reserved = 0, used = 0, waiting = 0;  // waiting: freed, until a synchronisation
};

struct Context {
  int device = 0;
  bool primary = false;
};

struct Stream {
  Context* context = nullptr;
  bool capturing = false;
};

struct Block {
  int device = 0;
  uint64_t bytes = 0;
  Context* context = nullptr;  // null: no plain allocation
  Pool* pool = nullptr;
  bool managed = false, small = false;
};

struct Created {
  int device = -1;  // -1: on the host
  uint64_t bytes = 0;
  int handles = 0, mappings = 0;
};

struct Graph {
  std::map<int, uint64_t> bytes;  // by device, of its allocation nodes
};

struct Device {
  Context primary;
  int retained = 0;
  bool active = false;
  uint64_t small_bytes = 0, graph_reserved = 0, graph_used = 0;
  Pool default_pool;
  Pool* current_pool = nullptr;
};

struct Process {
  std::recursive_mutex mutex;
  bool initialized = false;
  std::map<int, Device> devices;
  std::map<uint64_t, Block> blocks;
  std::map<uint64_t, Created*> mappings;
  std::map<uint64_t, uint64_t> mapping_bytes;
  std::map<uint64_t, Created*> handles;
  std::map<void*, Block> arrays;
  std::set<Pool*> pools;
  std::set<Context*> contexts;
  std::set<Context*> synchronized;
  uint64_t next = 0x7f0000000000;
};

Process& process();
Device& device(int ordinal);
extern thread_local Context* t_current;

uint64_t new_address(uint64_t bytes);
bool take(int ordinal, uint64_t bytes);
void give(int ordinal, uint64_t bytes);
// Changes what a pool reserves; false when the card is full.
bool resize(Pool& pool, uint64_t bytes);
void synchronize(int ordinal);
void end_context(Context& context);

}  // namespace model
