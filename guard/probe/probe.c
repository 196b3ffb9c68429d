/* SPDX-License-Identifier: Apache-2.0
 * Asks the driver for memory in one way, once below and once above a quota, and says what it answered. It knows nothing
 * of the guard: it is a program like any other. libc alone.
 *
 * probe WAY ROUTE DEVICE BELOW ABOVE
 * probe devices dlsym 0 0 0
 *
 * WAY: one of k_ways below. ROUTE: dlsym, gpa (cuGetProcAddress), or the name of a CUDA runtime. BELOW and ABOVE are bytes:
 * the first fits into the quota, the second does not. It prints one line and ends with 0:
 *
 *   probe PHASE BELOW_RESULT ABOVE_RESULT
 *
 * PHASE is how far it came: done, or the name of the call before that failed (its result in BELOW_RESULT), or missing (the
 * driver has no such function), or library (no libcuda.so.1 or runtime). Results are CUresult; -1: not asked.
 * devices: before that, for each device that CUDA shows, "device ORDINAL UUID PCI NAME", the UUID in 32 digits of hex, "-"
 * for what the driver does not say; BELOW_RESULT is how many there are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void* Handle;
typedef uint64_t Pointer;

/* Layouts of cuda.h, CUDA 13.0; unchanged since the calls came (guard/driver.h). */
typedef struct {
  int type, id;
} Location;
typedef struct {
  int type, handle_types;
  Location location;
  void* metadata;
  unsigned char flags[8];
} AllocationProperties;
typedef struct {
  int type, handle_types;
  Location location;
  void* attributes;
  size_t max_bytes;
  unsigned short usage;
  unsigned char reserved[54];
} PoolProperties;
typedef struct {
  PoolProperties pool;
  const void* access;
  size_t access_count, bytes;
  Pointer address;
} AllocationNode;
typedef struct {
  size_t width, height, depth;
  unsigned format, channels, flags;
} ArrayShape;

static void* g_driver;
static int (*g_ask)(const char*, void**, int, uint64_t,
                    int*); /* cuGetProcAddress_v2; null: by name */

static int say(const char* phase, int below, int above) {
  printf("probe %s %d %d\n", phase, below, above);
  fflush(stdout);
  _Exit(0); /* drivers start threads: without their exit handlers */
}

/* `version`: of the CUDA toolkit whose form of the call is meant, for cuGetProcAddress; `symbol`: its name for dlsym. */
static void* find(const char* name, const char* symbol, int version) {
  void* found = NULL;
  if (!g_ask) {
    found = dlsym(g_driver, symbol);
  } else {
    int status = 0;
    if (g_ask(name, &found, version, 0, &status) != 0) found = NULL;
  }
  if (!found) say("missing", -1, -1);
  return found;
}
#define CALL(name, symbol, version, ...) ((int (*)(__VA_ARGS__))find(name, symbol, version))

static void must(const char* call, int result) {
  if (result != 0) say(call, result, -1);
}

static int alloc(Pointer* out, uint64_t bytes) {
  return CALL("cuMemAlloc", "cuMemAlloc_v2", 3020, Pointer*, size_t)(out, bytes);
}
static void dealloc(Pointer at) { CALL("cuMemFree", "cuMemFree_v2", 3020, Pointer)(at); }

static int way_alloc(uint64_t bytes, int device) {
  (void)device;
  Pointer at = 0;
  int result = alloc(&at, bytes);
  if (result == 0) dealloc(at);
  return result;
}

static int way_pitch(uint64_t bytes, int device) {
  (void)device;
  Pointer at = 0;
  size_t pitch = 0, width = 1 << 20;
  int result = CALL("cuMemAllocPitch", "cuMemAllocPitch_v2", 3020, Pointer*, size_t*, size_t,
                    size_t, unsigned)(&at, &pitch, width, bytes / width, 4);
  if (result == 0) dealloc(at);
  return result;
}

static int way_vmm(uint64_t bytes, int device) {
  AllocationProperties wanted;
  memset(&wanted, 0, sizeof wanted);
  wanted.type = 1;
  wanted.location.type = 1, wanted.location.id = device;
  uint64_t handle = 0, step = 2 << 20;
  int result =
      CALL("cuMemCreate", "cuMemCreate", 10020, uint64_t*, size_t, const AllocationProperties*,
           unsigned long long)(&handle, (bytes + step - 1) / step * step, &wanted, 0);
  if (result == 0) CALL("cuMemRelease", "cuMemRelease", 10020, uint64_t)(handle);
  return result;
}

static void give_back_async(Pointer at) {
  CALL("cuMemFreeAsync", "cuMemFreeAsync", 11020, Pointer, Handle)(at, NULL);
  CALL("cuCtxSynchronize", "cuCtxSynchronize", 2000, void)();
}

static int way_async(uint64_t bytes, int device) {
  (void)device;
  Pointer at = 0;
  int result =
      CALL("cuMemAllocAsync", "cuMemAllocAsync", 11020, Pointer*, size_t, Handle)(&at, bytes, NULL);
  if (result == 0) give_back_async(at);
  return result;
}

static int way_pool(uint64_t bytes, int device) {
  PoolProperties wanted;
  memset(&wanted, 0, sizeof wanted);
  wanted.type = 1;
  wanted.location.type = 1, wanted.location.id = device;
  Handle pool = NULL;
  Pointer at = 0;
  must("cuMemPoolCreate", CALL("cuMemPoolCreate", "cuMemPoolCreate", 11020, Handle*,
                               const PoolProperties*)(&pool, &wanted));
  int result = CALL("cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync", 11020, Pointer*, size_t,
                    Handle, Handle)(&at, bytes, pool, NULL);
  if (result == 0) give_back_async(at);
  CALL("cuMemPoolDestroy", "cuMemPoolDestroy", 11020, Handle)(pool);
  return result;
}

static int way_array(uint64_t bytes, int device) {
  (void)device;
  /* Layers of 2048 x 512 texels of 16 bytes are 16 MiB; 16384 of them are within every card's limits. */
  ArrayShape shape;
  memset(&shape, 0, sizeof shape);
  shape.width = 2048, shape.height = 512, shape.depth = (bytes + (16 << 20) - 1) >> 24;
  shape.format = 0x20, shape.channels = 4;
  Handle array = NULL;
  int result = CALL("cuArray3DCreate", "cuArray3DCreate_v2", 3020, Handle*, const ArrayShape*)(
      &array, &shape);
  if (result == 0) CALL("cuArrayDestroy", "cuArrayDestroy", 2000, Handle)(array);
  return result;
}

/* A graph's memory is taken when it is launched, or, under a quota, refused when its node is made. */
static int way_graph(uint64_t bytes, int device) {
  AllocationNode wanted;
  memset(&wanted, 0, sizeof wanted);
  wanted.pool.type = 1;
  wanted.pool.location.type = 1, wanted.pool.location.id = device;
  wanted.bytes = bytes;
  Handle graph = NULL, node = NULL, made = NULL;
  must("cuGraphCreate",
       CALL("cuGraphCreate", "cuGraphCreate", 10000, Handle*, unsigned)(&graph, 0));
  int result = CALL("cuGraphAddMemAllocNode", "cuGraphAddMemAllocNode", 11040, Handle*, Handle,
                    const Handle*, size_t, AllocationNode*)(&node, graph, NULL, 0, &wanted);
  if (result == 0)
    result = CALL("cuGraphInstantiate", "cuGraphInstantiateWithFlags", 12000, Handle*, Handle,
                  unsigned long long)(&made, graph, 0);
  if (result == 0)
    result = CALL("cuGraphLaunch", "cuGraphLaunch", 10000, Handle, Handle)(made, NULL);
  if (result == 0) result = CALL("cuCtxSynchronize", "cuCtxSynchronize", 2000, void)();
  return result;
}

/* cudaMalloc of a runtime's own file, which makes its context itself; cudaErrorMemoryAllocation is 2 as well. */
static void* g_runtime;
static int way_runtime(uint64_t bytes, int device) {
  (void)device;
  int (*take)(void**, size_t) = (int (*)(void**, size_t))dlsym(g_runtime, "cudaMalloc");
  int (*give)(void*) = (int (*)(void*))dlsym(g_runtime, "cudaFree");
  void* at = NULL;
  if (!take || !give) say("missing", -1, -1);
  int result = take(&at, bytes);
  /* cudaErrorInsufficientDriver: a runtime newer than the driver is no way to memory here. */
  if (result == 35) say("missing", -1, -1);
  if (result == 0) give(at);
  return result;
}

static const struct {
  const char* name;
  int (*ask)(uint64_t, int);
} k_ways[] = {{"alloc", way_alloc}, {"pitch", way_pitch},    {"vmm", way_vmm},
              {"async", way_async}, {"pool", way_pool},      {"array", way_array},
              {"graph", way_graph}, {"runtime", way_runtime}};

static int say_devices(void) {
  int count = 0;
  must("cuInit", CALL("cuInit", "cuInit", 2000, unsigned)(0));
  must("cuDeviceGetCount", CALL("cuDeviceGetCount", "cuDeviceGetCount", 2000, int*)(&count));
  /* _v2 tells a MIG instance's own. */
  int (*uuid)(unsigned char*, int) =
      (int (*)(unsigned char*, int))dlsym(g_driver, "cuDeviceGetUuid_v2");
  if (!uuid) uuid = (int (*)(unsigned char*, int))dlsym(g_driver, "cuDeviceGetUuid");
  int (*pci)(char*, int, int) = (int (*)(char*, int, int))dlsym(g_driver, "cuDeviceGetPCIBusId");
  int (*name)(char*, int, int) = (int (*)(char*, int, int))dlsym(g_driver, "cuDeviceGetName");
  for (int i = 0; i < count; ++i) {
    unsigned char id[16];
    char digits[33] = "-", address[32] = "-", text[128] = "-";
    if (uuid && uuid(id, i) == 0)
      for (int k = 0; k < 16; ++k) sprintf(digits + 2 * k, "%02x", id[k]);
    if (!pci || pci(address, sizeof address, i) != 0) strcpy(address, "-");
    if (!name || name(text, sizeof text, i) != 0) strcpy(text, "-");
    printf("device %d %s %s %s\n", i, digits, address, text);
  }
  return say("done", count, -1);
}

static void start(int device) {
  Handle context = NULL;
  int ordinal = 0;
  must("cuInit", CALL("cuInit", "cuInit", 2000, unsigned)(0));
  must("cuDeviceGet", CALL("cuDeviceGet", "cuDeviceGet", 2000, int*, int)(&ordinal, device));
  must("cuDevicePrimaryCtxRetain", CALL("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain",
                                        7000, Handle*, int)(&context, ordinal));
  must("cuCtxSetCurrent", CALL("cuCtxSetCurrent", "cuCtxSetCurrent", 4000, Handle)(context));
}

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const char* route = argv[2];
  int device = atoi(argv[3]);
  uint64_t below = strtoull(argv[4], NULL, 10), above = strtoull(argv[5], NULL, 10);
  g_driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!g_driver) say("library", -1, -1);
  if (strcmp(route, "gpa") == 0) {
    *(void**)&g_ask = dlsym(g_driver, "cuGetProcAddress_v2");
    if (!g_ask) say("missing", -1, -1);
  } else if (strcmp(route, "dlsym") != 0) {
    g_runtime = dlopen(route, RTLD_NOW);
    if (!g_runtime) say("library", -1, -1);
  }
  if (strcmp(argv[1], "devices") == 0) return say_devices();
  for (size_t i = 0; i < sizeof k_ways / sizeof *k_ways; ++i) {
    if (strcmp(argv[1], k_ways[i].name) != 0) continue;
    if (!g_runtime) start(device);
    int granted = k_ways[i].ask(below, device);
    say("done", granted, k_ways[i].ask(above, device));
  }
  return 2;
}
