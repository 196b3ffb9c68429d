// SPDX-License-Identifier: Apache-2.0
// libcuda.so.1 of the described cards: virtual memory, pools, streams, graphs.
#include <algorithm>
#include <cstring>

#include "model.h"

using namespace model;
using standin::enter;
using standin::machine;

#define LOCKED std::lock_guard<std::recursive_mutex> locked(process().mutex)

STANDIN_EXPORT int cuMemFree_v2(uint64_t address);

namespace {

struct Location {
  int type, id;
};
struct Properties {  // CUmemAllocationProp
  int type, handle_types;
  Location location;
  void* metadata;
  unsigned char flags[8];
};
struct PoolProperties {  // CUmemPoolProps
  int type, handle_types;
  Location location;
  void* attributes;
  size_t most;
  unsigned short usage;
  unsigned char reserved[54];
};
struct AllocationNode {  // CUDA_MEM_ALLOC_NODE_PARAMS
  PoolProperties pool;
  const void* access;
  size_t access_count, bytes;
  uint64_t address;
};

void drop(Created* created) {
  if (created->handles || created->mappings) return;
  if (created->device >= 0) give(created->device, created->bytes);
  delete created;
}

int from_pool(uint64_t* out, uint64_t bytes, Pool* pool, Stream* stream) {
  if (!out || bytes == 0) return k_invalid;
  *out = new_address(bytes);
  if (reinterpret_cast<uintptr_t>(stream) > 2 && stream->capturing) return k_ok;
  uint64_t needed = pool->used + bytes;
  // A freed block is taken again as soon as it is free.
  if (needed > pool->reserved) {
    uint64_t grown = (needed + pool->step - 1) / pool->step * pool->step;
    if (!resize(*pool, grown)) return k_out_of_memory;
  }
  pool->used = needed;
  Block block;
  block.device = pool->device, block.bytes = bytes, block.pool = pool;
  process().blocks[*out] = block;
  return k_ok;
}

int give_async(uint64_t address) {
  LOCKED;
  if (int code = enter("cuMemFreeAsync")) return code;
  auto found = process().blocks.find(address);
  if (found == process().blocks.end()) return k_ok;  // captured
  Pool* pool = found->second.pool;
  if (!pool) return cuMemFree_v2(address);  // of cuMemAlloc: given back as by cuMemFree
  if (card::gpu(pool->device).number("free_delay"))
    pool->waiting += found->second.bytes;
  else
    pool->used -= found->second.bytes;
  process().blocks.erase(found);
  if (pool->destroyed && pool->used == 0) {
    resize(*pool, 0);
    process().pools.erase(pool);
    delete pool;
  }
  return k_ok;
}

int device_of_stream(Stream* stream) {
  if (reinterpret_cast<uintptr_t>(stream) > 2) return stream->context->device;
  return t_current ? t_current->device : -1;
}

}  // namespace

STANDIN_EXPORT int cuMemGetAllocationGranularity(size_t* bytes, const Properties*, int) {
  *bytes = k_page;
  return k_ok;
}
STANDIN_EXPORT int cuMemAddressReserve(uint64_t* out, size_t bytes, size_t, uint64_t, uint64_t) {
  LOCKED;
  *out = new_address(bytes);
  return k_ok;
}
STANDIN_EXPORT int cuMemAddressFree(uint64_t, size_t) { return k_ok; }
STANDIN_EXPORT int cuMemSetAccess(uint64_t, size_t, const void*, size_t) { return k_ok; }
STANDIN_EXPORT int cuMemCreate(uint64_t* out, size_t bytes, const Properties* wanted, uint64_t) {
  LOCKED;
  if (int code = enter("cuMemCreate")) return code;
  // The kind whose refusal is an error, not a full card (NCCL asks for it and goes on).
  if (wanted->location.type == 4 || bytes % k_page) return k_invalid;
  int version = static_cast<int>(machine().number("cuda", 13000));
  if ((wanted->location.type == 3 && version < 12020) ||
      (wanted->location.type == 2 && version < 13000))
    return k_invalid;
  // A seccomp filter that forbids get_mempolicy.
  if (wanted->location.type == 3 && machine().number("numa_forbidden")) return k_not_supported;
  bool on_device = wanted->location.type == 1;
  if (on_device && wanted->location.id >= card::visible_count()) return k_invalid_device;
  if (on_device && !take(wanted->location.id, bytes)) return k_out_of_memory;
  auto* created = new Created{on_device ? wanted->location.id : -1, bytes, 1, 0};
  *out = reinterpret_cast<uint64_t>(created);
  process().handles[*out] = created;
  return k_ok;
}
STANDIN_EXPORT int cuMemRelease(uint64_t handle) {
  LOCKED;
  auto found = process().handles.find(handle);
  if (found == process().handles.end()) return k_invalid;
  Created* created = found->second;
  if (--created->handles == 0) process().handles.erase(found);
  drop(created);
  return k_ok;
}
STANDIN_EXPORT int cuMemRetainAllocationHandle(uint64_t* out, void* address) {
  LOCKED;
  auto found = process().mappings.upper_bound(reinterpret_cast<uint64_t>(address));
  if (found == process().mappings.begin()) return k_invalid;
  Created* created = (--found)->second;
  ++created->handles;
  *out = reinterpret_cast<uint64_t>(created);
  process().handles[*out] = created;
  return k_ok;
}
STANDIN_EXPORT int cuMemMap(uint64_t address, size_t bytes, size_t, uint64_t handle, uint64_t) {
  LOCKED;
  auto found = process().handles.find(handle);
  if (found == process().handles.end()) return k_invalid;
  ++found->second->mappings;
  process().mappings[address] = found->second;
  process().mapping_bytes[address] = bytes;
  return k_ok;
}
STANDIN_EXPORT int cuMemUnmap(uint64_t address, size_t bytes) {
  LOCKED;
  auto first = process().mappings.find(address);
  if (first == process().mappings.end()) return k_invalid;
  while (first != process().mappings.end() && first->first < address + bytes) {
    Created* created = first->second;
    process().mapping_bytes.erase(first->first);
    first = process().mappings.erase(first);
    --created->mappings;
    drop(created);
  }
  return k_ok;
}
STANDIN_EXPORT int cuMemExportToShareableHandle(void* out, uint64_t handle, int, uint64_t) {
  std::memcpy(out, &handle, sizeof(int));
  return k_ok;
}
// What another process exported is not on this process's account.
STANDIN_EXPORT int cuMemImportFromShareableHandle(uint64_t* out, void*, int) {
  LOCKED;
  auto* created = new Created{-1, 64 * k_mib, 1, 0};
  *out = reinterpret_cast<uint64_t>(created);
  process().handles[*out] = created;
  return k_ok;
}

STANDIN_EXPORT int cuStreamCreate(Stream** out, unsigned) {
  LOCKED;
  if (!t_current) return k_invalid_context;
  *out = new Stream{t_current, false};
  return k_ok;
}
STANDIN_EXPORT int cuStreamGetCtx(Stream* stream, Context** out) {
  *out = reinterpret_cast<uintptr_t>(stream) > 2 ? stream->context : t_current;
  return k_ok;
}
STANDIN_EXPORT int cuStreamSynchronize(Stream* stream) {
  LOCKED;
  synchronize(device_of_stream(stream));
  return k_ok;
}
STANDIN_EXPORT int cuStreamBeginCapture_v2(Stream* stream, int) {
  stream->capturing = true;
  return k_ok;
}
STANDIN_EXPORT int cuStreamEndCapture(Stream* stream, Graph** out) {
  stream->capturing = false;
  *out = new Graph;
  return k_ok;
}
STANDIN_EXPORT int cuStreamIsCapturing(Stream* stream, int* status) {
  // Of streams that do not block the legacy one, as torch's, that one says nothing.
  *status = reinterpret_cast<uintptr_t>(stream) > 2 && stream->capturing;
  return k_ok;
}

STANDIN_EXPORT int cuDeviceGetDefaultMemPool(Pool** out, int ordinal) {
  LOCKED;
  *out = &device(ordinal).default_pool;
  return k_ok;
}
STANDIN_EXPORT int cuDeviceGetMemPool(Pool** out, int ordinal) {
  LOCKED;
  *out = device(ordinal).current_pool;
  return k_ok;
}
STANDIN_EXPORT int cuDeviceSetMemPool(int ordinal, Pool* pool) {
  LOCKED;
  device(ordinal).current_pool = pool;
  return k_ok;
}
STANDIN_EXPORT int cuMemPoolCreate(Pool** out, const PoolProperties* wanted) {
  LOCKED;
  auto* pool = new Pool;
  pool->device = wanted->location.type == 1 ? wanted->location.id : 0;
  pool->counts = wanted->location.type == 1;
  pool->step = card::gpu(pool->device).number("pool_step", 32 * k_mib);
  process().pools.insert(pool);
  *out = pool;
  return k_ok;
}
STANDIN_EXPORT int cuMemPoolDestroy(Pool* pool) {
  LOCKED;
  if (process().pools.count(pool) == 0) return k_invalid;
  pool->destroyed = true;
  if (pool->used == 0) {
    resize(*pool, 0);
    process().pools.erase(pool);
    delete pool;
  }
  return k_ok;
}
STANDIN_EXPORT int cuMemPoolTrimTo(Pool* pool, size_t keep) {
  LOCKED;
  uint64_t needed = (pool->used + k_page - 1) / k_page * k_page;
  resize(*pool, std::min(pool->reserved, std::max<uint64_t>(needed, keep)));
  return k_ok;
}
STANDIN_EXPORT int cuMemPoolGetAttribute(Pool* pool, int attribute, void* out) {
  LOCKED;
  if (machine().number("no_pool_attributes")) return k_not_supported;
  uint64_t value = attribute == 5   ? pool->reserved
                   : attribute == 7 ? pool->used
                   : attribute == 4 ? pool->threshold
                                    : 0;
  std::memcpy(out, &value, sizeof value);
  return k_ok;
}
STANDIN_EXPORT int cuMemPoolSetAttribute(Pool* pool, int attribute, void* value) {
  LOCKED;
  if (attribute == 4) std::memcpy(&pool->threshold, value, sizeof pool->threshold);
  return k_ok;
}
static int alloc_async(const char* name, uint64_t* out, size_t bytes, Stream* stream) {
  LOCKED;
  if (int code = enter(name)) return code;
  int ordinal = device_of_stream(stream);
  return ordinal < 0 ? k_invalid_context
                     : from_pool(out, bytes, device(ordinal).current_pool, stream);
}
STANDIN_EXPORT int cuMemAllocAsync(uint64_t* out, size_t bytes, Stream* stream) {
  return alloc_async("cuMemAllocAsync", out, bytes, stream);
}
STANDIN_EXPORT int cuMemAllocAsync_ptsz(uint64_t* out, size_t bytes, Stream* stream) {
  return alloc_async("cuMemAllocAsync", out, bytes, stream);
}
STANDIN_EXPORT int cuMemAllocFromPoolAsync(uint64_t* out, size_t bytes, Pool* pool,
                                           Stream* stream) {
  LOCKED;
  return from_pool(out, bytes, pool, stream);
}
STANDIN_EXPORT int cuMemFreeAsync(uint64_t address, Stream*) { return give_async(address); }
STANDIN_EXPORT int cuMemFreeAsync_ptsz(uint64_t address, Stream*) { return give_async(address); }
STANDIN_EXPORT int cuPointerGetAttribute(void* out, int attribute, uint64_t address) {
  LOCKED;
  auto found = process().blocks.find(address);
  if (found == process().blocks.end()) return k_invalid;
  const Block& block = found->second;
  int number = attribute == 2   ? (block.pool && !block.pool->counts ? 1 : 2)
               : attribute == 9 ? block.device
                                : 0;
  if (attribute == 17)
    std::memcpy(out, &block.pool, sizeof block.pool);
  else
    std::memcpy(out, &number, sizeof number);
  return k_ok;
}

STANDIN_EXPORT int cuGraphCreate(Graph** out, unsigned) {
  *out = new Graph;
  return k_ok;
}
STANDIN_EXPORT int cuGraphAddMemAllocNode(void** node, Graph* graph, void* const*, size_t,
                                          AllocationNode* wanted) {
  LOCKED;
  graph->bytes[wanted->pool.location.id] += wanted->bytes;
  wanted->address = new_address(wanted->bytes);
  *node = graph;
  return k_ok;
}
STANDIN_EXPORT int cuGraphInstantiateWithFlags(Graph** out, Graph* graph, uint64_t) {
  *out = new Graph(*graph);
  return k_ok;
}
// The first launch takes the memory; it stays until a trim.
STANDIN_EXPORT int cuGraphLaunch(Graph* graph, Stream*) {
  LOCKED;
  for (auto& [ordinal, bytes] : graph->bytes) {
    Device& owner = device(ordinal);
    uint64_t needed = (bytes + k_page - 1) / k_page * k_page;
    if (needed > owner.graph_reserved) {
      if (!take(ordinal, needed - owner.graph_reserved)) return k_out_of_memory;
      owner.graph_reserved = needed;
    }
  }
  return k_ok;
}
STANDIN_EXPORT int cuGraphExecDestroy(Graph* graph) {
  delete graph;
  return k_ok;
}
STANDIN_EXPORT int cuDeviceGetGraphMemAttribute(int ordinal, int attribute, void* out) {
  LOCKED;
  uint64_t value = attribute == 2 ? device(ordinal).graph_reserved : 0;
  std::memcpy(out, &value, sizeof value);
  return k_ok;
}
STANDIN_EXPORT int cuDeviceGraphMemTrim(int ordinal) {
  LOCKED;
  give(ordinal, device(ordinal).graph_reserved);
  device(ordinal).graph_reserved = 0;
  return k_ok;
}
