// SPDX-License-Identifier: Apache-2.0
// The driver's interface as far as the guard uses it: types by their layout in cuda.h (CUDA 13.0; none of these changed
// since the version beside its hook), and the real functions.
#pragma once

#include "platform.h"

namespace guard {

using Result = int;
using Device = int;
using Pointer = uint64_t;
using Handle = void*;  // context, stream, pool, array, graph

constexpr Result k_ok = 0, k_invalid_value = 1, k_out_of_memory = 2, k_not_initialized = 3,
                 k_not_supported = 801;

struct Location {
  int type;  // 1 = a device, with its ordinal; 2, 3, 4 = host
  int id;
};
constexpr int k_location_device = 1;

struct AllocationProperties {  // CUmemAllocationProp
  int type, handle_types;
  Location location;
  void* metadata;
  uint8_t flags[8];
};

struct PoolProperties {  // CUmemPoolProps
  int type, handle_types;
  Location location;
  void* attributes;
  size_t max_bytes;
  unsigned short usage;
  unsigned char reserved[54];
};
static_assert(sizeof(PoolProperties) == 88);
constexpr int k_type_pinned = 1;

struct AllocationNode {  // CUDA_MEM_ALLOC_NODE_PARAMS
  PoolProperties pool;
  const void* access;
  size_t access_count;
  size_t bytes;
  Pointer address;
};

struct GraphNode {  // CUgraphNodeParams
  int type;
  int reserved[3];
  AllocationNode allocation;
};
constexpr int k_node_allocation = 10;

struct ArrayShape {  // CUDA_ARRAY_DESCRIPTOR
  size_t width, height;
  unsigned format, channels;
};
struct Array3DShape {  // CUDA_ARRAY3D_DESCRIPTOR
  size_t width, height, depth;
  unsigned format, channels, flags;
};
constexpr unsigned k_array_cubemap = 0x04, k_array_sparse = 0x40, k_array_deferred = 0x80;

struct ArrayNeeds {  // CUDA_ARRAY_MEMORY_REQUIREMENTS
  size_t bytes, alignment;
  unsigned reserved[4];
};

constexpr int k_pool_reserved = 5, k_pool_used = 7;  // CU_MEMPOOL_ATTR_*_MEM_CURRENT
constexpr int k_graph_reserved = 2;                  // CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT
constexpr int k_pointer_memory_type = 2, k_pointer_managed = 8, k_pointer_ordinal = 9,
              k_pointer_pool = 17;
constexpr int k_memory_host = 1;

enum Hook : int {
#define GUARD_HOOK(symbol, name, version, stream) hook_##symbol,
#include "hooks.inc"
#undef GUARD_HOOK
  k_hooks
};

// The driver's own function behind a hook, found when it is first needed; null where this driver has none.
void* real(Hook hook);

template <class Function>
Function* real_as(Hook hook) {
  return reinterpret_cast<Function*>(real(hook));
}

// The driver's function of that name; null where there is none.
void* driver_function(const char* name);

// Functions that the guard asks and does not stand before. Null where this driver has none.
struct Driver {
  Result (*get_version)(int*);
  Result (*context_device)(Device*);
  Result (*current_context)(Handle*);
  Result (*uuid)(void*, Device);
  Result (*uuid_v2)(void*, Device);
  Result (*pci)(char*, int, Device);
  Result (*primary_state)(Device, unsigned*, int*);
  Result (*pool_attribute)(Handle, int, void*);
  Result (*device_pool)(Handle*, Device);
  Result (*default_pool)(Handle*, Device);
  Result (*graph_attribute)(Device, int, void*);
  Result (*pointer_attribute)(void*, int, Pointer);
  Result (*stream_context)(Handle, Handle*);
  Result (*is_capturing)(Handle, int*);
  Result (*is_capturing_ptsz)(Handle, int*);
  Result (*free_async)(Pointer, Handle);
  Result (*free_async_ptsz)(Pointer, Handle);
  Result (*array_needs)(ArrayNeeds*, Handle, Device);
  Result (*mipmap_needs)(ArrayNeeds*, Handle, Device);
};
const Driver& driver();

// The ordinal of the current context's device; -1 without one.
inline Device current_device() {
  Device device = -1;
  const Driver& cuda = driver();
  return cuda.context_device && cuda.context_device(&device) == k_ok ? device : -1;
}

inline Handle current_context() {
  Handle context = nullptr;
  const Driver& cuda = driver();
  return cuda.current_context && cuda.current_context(&context) == k_ok ? context : nullptr;
}

}  // namespace guard
