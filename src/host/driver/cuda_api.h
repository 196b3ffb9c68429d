// SPDX-License-Identifier: Apache-2.0
// The part of the CUDA driver's binary interface that cufit calls, as NVIDIA's API reference
// publishes it. Names carry the version suffix that the library exports (cuda.h hides it behind
// macros). Used by cuda_query.cc, its parts and the tests' stand-in library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cufit::host::cuda {

using Device = int;
using Context = void*;
using Module = void*;
using Function = void*;
using Pointer = uint64_t;  // CUdeviceptr on 64-bit hosts

struct Uuid {
  unsigned char bytes[16];
};

constexpr int k_success = 0;
constexpr int k_out_of_memory = 2;
constexpr int k_not_found = 500;

constexpr int k_attribute_integrated = 18;
constexpr int k_attribute_major = 75;
constexpr int k_attribute_minor = 76;

using Init = int(unsigned);
using DriverGetVersion = int(int*);
using DeviceGetCount = int(int*);
using DeviceGet = int(Device*, int);
using DeviceGetName = int(char*, int, Device);
using DeviceGetUuid = int(Uuid*, Device);
using DeviceGetPciBusId = int(char*, int, Device);
using DeviceTotalMem = int(size_t*, Device);
using DeviceGetAttribute = int(int*, int, Device);
using DeviceCanAccessPeer = int(int*, Device, Device);
using PrimaryCtxRetain = int(Context*, Device);
using PrimaryCtxRelease = int(Device);
using CtxSetCurrent = int(Context);
using CtxSynchronize = int();
using MemGetInfo = int(size_t*, size_t*);
using MemAlloc = int(Pointer*, size_t);
using MemFree = int(Pointer);
using MemcpyHtoD = int(Pointer, const void*, size_t);
using MemcpyDtoH = int(void*, Pointer, size_t);
using ModuleLoadData = int(Module*, const void*);
using ModuleGetFunction = int(Function*, Module, const char*);
using ModuleUnload = int(Module);
using LaunchKernel = int(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, void*, void**, void**);

}  // namespace cufit::host::cuda
