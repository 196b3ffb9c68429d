// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

#include <stddef.h>
#include <string.h>

#include "resolver_parts.h"

namespace guard {

void* driver_function(const char* name) {
  Object library;
  if (!object_of_family(Family::cuda, &library)) return nullptr;
  follow(library);
  return library.function(name);
}

const Driver& driver() {
  static Driver all;
  static uintptr_t base;  // of the library that `all` was filled from
  if (load(base) != 0 && load(base) == cuda_base()) return all;
  Object library;
  if (!object_of_family(Family::cuda, &library)) return all;
  follow(library);
  struct Row {
    size_t place;
    char name[40];
  };
  static const Row k_places[] = {
      {offsetof(Driver, get_version), "cuDriverGetVersion"},
      {offsetof(Driver, context_device), "cuCtxGetDevice"},
      {offsetof(Driver, current_context), "cuCtxGetCurrent"},
      {offsetof(Driver, uuid), "cuDeviceGetUuid"},
      {offsetof(Driver, uuid_v2), "cuDeviceGetUuid_v2"},
      {offsetof(Driver, pci), "cuDeviceGetPCIBusId"},
      {offsetof(Driver, primary_state), "cuDevicePrimaryCtxGetState"},
      {offsetof(Driver, pool_attribute), "cuMemPoolGetAttribute"},
      {offsetof(Driver, device_pool), "cuDeviceGetMemPool"},
      {offsetof(Driver, default_pool), "cuDeviceGetDefaultMemPool"},
      {offsetof(Driver, graph_attribute), "cuDeviceGetGraphMemAttribute"},
      {offsetof(Driver, pointer_attribute), "cuPointerGetAttribute"},
      {offsetof(Driver, stream_context), "cuStreamGetCtx"},
      {offsetof(Driver, is_capturing), "cuStreamIsCapturing"},
      {offsetof(Driver, is_capturing_ptsz), "cuStreamIsCapturing_ptsz"},
      {offsetof(Driver, free_async), "cuMemFreeAsync"},
      {offsetof(Driver, free_async_ptsz), "cuMemFreeAsync_ptsz"},
      {offsetof(Driver, array_needs), "cuArrayGetMemoryRequirements"},
      {offsetof(Driver, mipmap_needs), "cuMipmappedArrayGetMemoryRequirements"},
  };
  static_assert(sizeof k_places / sizeof k_places[0] == sizeof(Driver) / sizeof(void*));
  for (const Row& row : k_places) {
    void* found = library.function(row.name);
    memcpy(reinterpret_cast<char*>(&all) + row.place, &found, sizeof found);
  }
  store(base, library.base);
  return all;
}

}  // namespace guard
