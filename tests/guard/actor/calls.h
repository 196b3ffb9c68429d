// SPDX-License-Identifier: Apache-2.0
// The driver's calls as a program gets at them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace actor {

using Handle = void*;

struct Location {
  int type, id;
};
struct Properties {
  int type, handle_types;
  Location location;
  void* metadata;
  unsigned char flags[8];
};
struct PoolProperties {
  int type, handle_types;
  Location location;
  void* attributes;
  size_t most;
  unsigned short usage;
  unsigned char reserved[54];
};
struct AllocationNode {
  PoolProperties pool;
  const void* access;
  size_t access_count, bytes;
  uint64_t address;
};
struct ArrayShape {
  size_t width, height, depth;
  unsigned format, channels, flags;
};

struct Calls {
  int (*cuInit)(unsigned);
  int (*cuDeviceGetCount)(int*);
  int (*cuDeviceTotalMem)(size_t*, int);
  int (*cuDevicePrimaryCtxRetain)(Handle*, int);
  int (*cuDevicePrimaryCtxRelease)(int);
  int (*cuDevicePrimaryCtxReset)(int);
  int (*cuCtxCreate)(Handle*, void*, unsigned, int);
  int (*cuCtxDestroy)(Handle);
  int (*cuCtxSetCurrent)(Handle);
  int (*cuCtxSynchronize)();
  int (*cuMemGetInfo)(size_t*, size_t*);
  int (*cuMemAlloc)(uint64_t*, size_t);
  int (*cuMemAllocPitch)(uint64_t*, size_t*, size_t, size_t, unsigned);
  int (*cuMemAllocManaged)(uint64_t*, size_t, unsigned);
  int (*cuMemFree)(uint64_t);
  int (*cuMemCreate)(uint64_t*, size_t, const Properties*, unsigned long long);
  int (*cuMemRelease)(uint64_t);
  int (*cuMemRetainAllocationHandle)(uint64_t*, void*);
  int (*cuMemImportFromShareableHandle)(uint64_t*, void*, int);
  int (*cuMemAddressReserve)(uint64_t*, size_t, size_t, uint64_t, unsigned long long);
  int (*cuMemMap)(uint64_t, size_t, size_t, uint64_t, unsigned long long);
  int (*cuMemUnmap)(uint64_t, size_t);
  int (*cuStreamCreate)(Handle*, unsigned);
  int (*cuStreamSynchronize)(Handle);
  int (*cuStreamBeginCapture)(Handle, int);
  int (*cuStreamEndCapture)(Handle, Handle*);
  int (*cuMemAllocAsync)(uint64_t*, size_t, Handle);
  int (*cuMemAllocFromPoolAsync)(uint64_t*, size_t, Handle, Handle);
  int (*cuMemFreeAsync)(uint64_t, Handle);
  int (*cuMemPoolCreate)(Handle*, const PoolProperties*);
  int (*cuMemPoolDestroy)(Handle);
  int (*cuMemPoolTrimTo)(Handle, size_t);
  int (*cuMemPoolSetAttribute)(Handle, int, void*);
  int (*cuDeviceGetDefaultMemPool)(Handle*, int);
  int (*cuArray3DCreate)(Handle*, const ArrayShape*);
  int (*cuArrayDestroy)(Handle);
  int (*cuGraphCreate)(Handle*, unsigned);
  int (*cuGraphAddMemAllocNode)(Handle*, Handle, const Handle*, size_t, AllocationNode*);
  int (*cuGraphInstantiate)(Handle*, Handle, unsigned long long);
  int (*cuGraphLaunch)(Handle, Handle);
  // NVML, always by dlopen and dlsym.
  int (*nvmlInit)();
  int (*nvmlHandle)(unsigned, Handle*);
  int (*nvmlMemory)(Handle, uint64_t*);
  int (*nvmlMemory2)(Handle, uint64_t*);
};

// route: dlsym, dlvsym, next (RTLD_NEXT), default (RTLD_DEFAULT), gpa (cuGetProcAddress), gpa_ptsz, linked, or the path of a
// CUDA runtime, whose cudaGetDriverEntryPoint is asked. Ends the program where something is missing.
Calls find_calls(const std::string& route);

}  // namespace actor
