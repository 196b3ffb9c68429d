// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>

#ifdef ACTOR_LINKED
extern "C" {
int cuInit(unsigned);
int cuDeviceGetCount(int*);
int cuDeviceTotalMem_v2(size_t*, int);
int cuDevicePrimaryCtxRetain(void**, int);
int cuCtxSetCurrent(void*);
int cuMemGetInfo_v2(size_t*, size_t*);
int cuMemAlloc_v2(uint64_t*, size_t);
int cuMemFree_v2(uint64_t);
int cuMemCreate(uint64_t*, size_t, const actor::Properties*, unsigned long long);
int cuMemRelease(uint64_t);
}
#endif

namespace actor {
namespace {

// The name of the symbol, of cuGetProcAddress, and a version of CUDA by which that is meant.
struct Row {
  size_t place;
  const char* symbol;
  const char* name;
  int version;
};
#define ROW(member, symbol, version) \
  { offsetof(Calls, member), symbol, #member, version }
const Row k_rows[] = {
    ROW(cuInit, "cuInit", 2000),
    ROW(cuDeviceGetCount, "cuDeviceGetCount", 2000),
    ROW(cuDeviceTotalMem, "cuDeviceTotalMem_v2", 3020),
    ROW(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000),
    ROW(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", 11000),
    ROW(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset_v2", 11000),
    ROW(cuCtxCreate, "cuCtxCreate_v4", 12050),
    ROW(cuCtxDestroy, "cuCtxDestroy_v2", 4000),
    ROW(cuCtxSetCurrent, "cuCtxSetCurrent", 4000),
    ROW(cuCtxSynchronize, "cuCtxSynchronize", 2000),
    ROW(cuMemGetInfo, "cuMemGetInfo_v2", 3020),
    ROW(cuMemAlloc, "cuMemAlloc_v2", 3020),
    ROW(cuMemAllocPitch, "cuMemAllocPitch_v2", 3020),
    ROW(cuMemAllocManaged, "cuMemAllocManaged", 6000),
    ROW(cuMemFree, "cuMemFree_v2", 3020),
    ROW(cuMemCreate, "cuMemCreate", 10020),
    ROW(cuMemRelease, "cuMemRelease", 10020),
    ROW(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000),
    ROW(cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle", 10020),
    ROW(cuMemAddressReserve, "cuMemAddressReserve", 10020),
    ROW(cuMemMap, "cuMemMap", 10020),
    ROW(cuMemUnmap, "cuMemUnmap", 10020),
    ROW(cuStreamCreate, "cuStreamCreate", 2000),
    ROW(cuStreamSynchronize, "cuStreamSynchronize", 2000),
    ROW(cuStreamBeginCapture, "cuStreamBeginCapture_v2", 10010),
    ROW(cuStreamEndCapture, "cuStreamEndCapture", 10000),
    ROW(cuMemAllocAsync, "cuMemAllocAsync", 11020),
    ROW(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020),
    ROW(cuMemFreeAsync, "cuMemFreeAsync", 11020),
    ROW(cuMemPoolCreate, "cuMemPoolCreate", 11020),
    ROW(cuMemPoolDestroy, "cuMemPoolDestroy", 11020),
    ROW(cuMemPoolTrimTo, "cuMemPoolTrimTo", 11020),
    ROW(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", 11020),
    ROW(cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", 11020),
    ROW(cuArray3DCreate, "cuArray3DCreate_v2", 3020),
    ROW(cuArrayDestroy, "cuArrayDestroy", 2000),
    ROW(cuGraphCreate, "cuGraphCreate", 10000),
    ROW(cuGraphAddMemAllocNode, "cuGraphAddMemAllocNode", 11040),
    ROW(cuGraphInstantiate, "cuGraphInstantiateWithFlags", 12000),
    ROW(cuGraphLaunch, "cuGraphLaunch", 10000),
};

void put(Calls& calls, const Row& row, void* function) {
  if (function)
    std::memcpy(reinterpret_cast<char*>(&calls) + row.place, &function, sizeof function);
}

[[noreturn]] void missing(const char* what) {
  std::fprintf(stderr, "actor: %s: %s\n", what, dlerror());
  std::exit(9);
}

void by_symbol(Calls& calls, const std::string& route) {
  void* library =
      dlopen("libcuda.so.1", RTLD_NOW | (route == "default" || route == "next" ? RTLD_GLOBAL : 0));
  if (!library) missing("libcuda.so.1");
  for (const Row& row : k_rows) {
    void* found = route == "default"  ? dlsym(RTLD_DEFAULT, row.symbol)
                  : route == "next"   ? dlsym(RTLD_NEXT, row.symbol)
                  : route == "dlvsym" ? dlvsym(library, row.symbol, "NO_SUCH_VERSION")
                                      : dlsym(library, row.symbol);
    // The card has no versions; a look-up with one finds nothing, as without the guard.
    if (route == "dlvsym") found = dlsym(library, row.symbol);
    put(calls, row, found);
  }
}

void by_proc_address(Calls& calls, int flags) {
  using Ask = int(const char*, void**, int, uint64_t, int*);
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  auto* ask = reinterpret_cast<Ask*>(library ? dlsym(library, "cuGetProcAddress_v2") : nullptr);
  if (!ask) missing("cuGetProcAddress_v2");
  // As the runtime does: once more through itself.
  void* again = nullptr;
  int status = 9;
  if (ask("cuGetProcAddress", &again, 12000, 0, &status) != 0 || status != 0)
    missing("cuGetProcAddress");
  ask = reinterpret_cast<Ask*>(again);
  for (const Row& row : k_rows) {
    void* found = nullptr;
    ask(row.name, &found, row.version, static_cast<uint64_t>(flags), &status);
    put(calls, row, found);
  }
}

void linked(Calls& calls) {
  by_symbol(calls, "dlsym");
#ifdef ACTOR_LINKED
  calls.cuInit = cuInit;
  calls.cuDeviceGetCount = cuDeviceGetCount;
  calls.cuDeviceTotalMem = cuDeviceTotalMem_v2;
  calls.cuDevicePrimaryCtxRetain = cuDevicePrimaryCtxRetain;
  calls.cuCtxSetCurrent = cuCtxSetCurrent;
  calls.cuMemGetInfo = cuMemGetInfo_v2;
  calls.cuMemAlloc = cuMemAlloc_v2;
  calls.cuMemFree = cuMemFree_v2;
  calls.cuMemCreate = cuMemCreate;
  calls.cuMemRelease = cuMemRelease;
#endif
}

void find_nvml(Calls& calls) {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (!library) return;
  auto find = [library](auto& place, const char* name) {
    void* found = dlsym(library, name);
    std::memcpy(&place, &found, sizeof found);
  };
  find(calls.nvmlInit, "nvmlInit_v2");
  find(calls.nvmlHandle, "nvmlDeviceGetHandleByIndex_v2");
  find(calls.nvmlMemory, "nvmlDeviceGetMemoryInfo");
  find(calls.nvmlMemory2, "nvmlDeviceGetMemoryInfo_v2");
}

}  // namespace

Calls find_calls(const std::string& route) {
  Calls calls{};
  if (route == "gpa")
    by_proc_address(calls, 0);
  else if (route == "gpa_ptsz")
    by_proc_address(calls, 2);
  else if (route == "linked")
    linked(calls);
  else
    by_symbol(calls, route);
  find_nvml(calls);
  return calls;
}

}  // namespace actor
