// SPDX-License-Identifier: Apache-2.0
// libcuda.so.1 of the described cards: cuGetProcAddress and the tables that the CUDA runtime asks for.
#include "lookup.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <dlfcn.h>

#include "model.h"

using namespace model;
using standin::machine;

namespace {

// What a look-up means by version: rows of one name in ascending order.
struct Versioned {
  const char* name;
  int version;
  const char* symbol;
  const char* per_thread;
};
const Versioned k_versioned[] = {
    {"cuMemAlloc", 3020, "cuMemAlloc_v2", ""},
    {"cuMemAllocPitch", 3020, "cuMemAllocPitch_v2", ""},
    {"cuMemFree", 3020, "cuMemFree_v2", ""},
    {"cuMemGetInfo", 3020, "cuMemGetInfo_v2", ""},
    {"cuDeviceTotalMem", 3020, "cuDeviceTotalMem_v2", ""},
    {"cuArrayCreate", 3020, "cuArrayCreate_v2", ""},
    {"cuArray3DCreate", 3020, "cuArray3DCreate_v2", ""},
    {"cuDeviceGetUuid", 9020, "cuDeviceGetUuid", ""},
    {"cuDeviceGetUuid", 11040, "cuDeviceGetUuid_v2", ""},
    {"cuDevicePrimaryCtxRelease", 11000, "cuDevicePrimaryCtxRelease_v2", ""},
    {"cuDevicePrimaryCtxReset", 11000, "cuDevicePrimaryCtxReset_v2", ""},
    {"cuCtxCreate", 3020, "cuCtxCreate_v2", ""},
    {"cuCtxCreate", 12050, "cuCtxCreate_v4", ""},
    {"cuCtxDestroy", 4000, "cuCtxDestroy_v2", ""},
    {"cuMemAllocAsync", 11020, "cuMemAllocAsync", "cuMemAllocAsync_ptsz"},
    {"cuMemFreeAsync", 11020, "cuMemFreeAsync", "cuMemFreeAsync_ptsz"},
    {"cuMemAllocFromPoolAsync", 11020, "cuMemAllocFromPoolAsync", ""},
    {"cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags", ""},
    {"cuStreamBeginCapture", 10010, "cuStreamBeginCapture_v2", ""},
    {"cuGetProcAddress", 11030, "cuGetProcAddress", ""},
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v2", ""},
};

void* self() {
  static void* handle = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&finds_itself), &info);
    return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  return handle;
}

// A function that this driver has by name only. The runtime wants many and calls few.
int unsupported() { return k_not_supported; }
int succeeds() { return k_ok; }

// Other addresses of some functions, as nothing forbids.
int second_mem_alloc(uint64_t* out, size_t bytes) {
  using Function = int(uint64_t*, size_t);
  return reinterpret_cast<Function*>(dlsym(self(), "cuMemAlloc_v2"))(out, bytes);
}
int second_mem_create(uint64_t* out, size_t bytes, const void* wanted, uint64_t flags) {
  using Function = int(uint64_t*, size_t, const void*, uint64_t);
  return reinterpret_cast<Function*>(dlsym(self(), "cuMemCreate"))(out, bytes, wanted, flags);
}
int future_mem_alloc(uint64_t*, size_t) { return k_not_supported; }

void* find(const std::string& name, int version, uint64_t flags) {
  if (machine().number("future") && name == "cuMemAlloc" && version >= 14000)
    return reinterpret_cast<void*>(&future_mem_alloc);
  if (machine().number("two_addresses") && name == "cuMemAlloc" && version >= 3020)
    return reinterpret_cast<void*>(&second_mem_alloc);
  if (machine().number("two_addresses") && name == "cuMemCreate")
    return reinterpret_cast<void*>(&second_mem_create);
  int newest = static_cast<int>(machine().number("cuda", 13000));
  const char* symbol = nullptr;
  bool listed = false;
  for (const Versioned& row : k_versioned) {
    if (name != row.name) continue;
    listed = true;
    if (row.version > version || row.version > newest) continue;
    symbol = flags & 2 && row.per_thread[0] ? row.per_thread : row.symbol;
  }
  if (!listed) symbol = name.c_str();
  return symbol ? dlsym(self(), symbol) : nullptr;
}

int get(const char* name, void** out, int version, uint64_t flags, int* status) {
  void* found = find(name, version, flags);
  // The 13.0 runtime insists on some that the model does not have.
  if (!found && std::strncmp(name, "cu", 2) == 0 &&
      version <= static_cast<int>(machine().number("cuda", 13000))) {
    bool quiet = std::strncmp(name, "cuProfiler", 10) == 0 ||
                 std::strncmp(name, "cuModule", 8) == 0 || std::strncmp(name, "cuLibrary", 9) == 0;
    found = reinterpret_cast<void*>(quiet ? &succeeds : &unsupported);
  }
  *out = found;
  if (status) *status = found ? 0 : 1;
  return k_ok;
}

// Tables of functions that only NVIDIA's own libraries know: a size in the first word, then functions. Enough of
// them for the runtime to keep its values beside a context.
std::map<std::pair<void*, void*>, void*>& kept() {
  static auto* values = new std::map<std::pair<void*, void*>, void*>;
  return *values;
}
int put_value(void* context, void* key, void* value, void*) {
  kept()[{context, key}] = value;
  return k_ok;
}
int remove_value(void* context, void* key) {
  kept().erase({context, key});
  return k_ok;
}
int get_value(void** out, void* context, void* key) {
  auto found = kept().find({context, key});
  if (found == kept().end()) return k_invalid_handle;
  *out = found->second;
  return k_ok;
}
int nothing() { return k_ok; }
// Where tools write which callbacks they want; the runtime reads it and refuses a short one.
int give_callbacks(void** out, size_t* count) {
  static char zeros[64 * 1024];
  *out = zeros, *count = 4096;
  return k_ok;
}
int primary_of(Context** out, int ordinal) {
  *out = &device(ordinal).primary;
  return k_ok;
}

}  // namespace

bool model::finds_itself() {
  void* by_name = dlsym(self(), "cuMemCreate");
  Dl_info found{}, own{};
  dladdr(reinterpret_cast<void*>(&finds_itself), &own);
  return by_name && dladdr(by_name, &found) && found.dli_fbase == own.dli_fbase;
}

STANDIN_EXPORT int cuGetProcAddress(const char* name, void** out, int version, uint64_t flags) {
  return get(name, out, version, flags, nullptr);
}
STANDIN_EXPORT int cuGetProcAddress_v2(const char* name, void** out, int version, uint64_t flags,
                                       int* status) {
  if (std::getenv("CUFIT_CARD_TRACE")) std::fprintf(stderr, "look-up %s %d\n", name, version);
  return get(name, out, version, flags, status);
}

STANDIN_EXPORT int cuGetExportTable(const void** out, const void* id) {
  static void* values[64];
  static void* others[64];
  static void* callbacks[64];
  static void* runtime[64];
  static const unsigned char k_callbacks[16] = {0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74,
                                                0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a, 0x66};
  static const unsigned char k_runtime[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                              0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};
  static const unsigned char k_values[16] = {0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11,
                                             0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93};
  if (std::getenv("CUFIT_CARD_TRACE")) {
    for (int i = 0; i < 16; ++i)
      std::fprintf(stderr, "%02x", static_cast<const unsigned char*>(id)[i]);
    std::fprintf(stderr, " export table\n");
  }
  if (!others[1]) {
    for (void*& function : others) function = reinterpret_cast<void*>(&nothing);
    others[0] = reinterpret_cast<void*>(sizeof others);
    std::memcpy(callbacks, others, sizeof others);
    std::memcpy(runtime, others, sizeof others);
    callbacks[2] = callbacks[6] = reinterpret_cast<void*>(&give_callbacks);
    runtime[2] = reinterpret_cast<void*>(&primary_of);
    values[0] = reinterpret_cast<void*>(&put_value);
    values[1] = reinterpret_cast<void*>(&remove_value);
    values[2] = reinterpret_cast<void*>(&get_value);
  }
  *out = std::memcmp(id, k_values, 16) == 0      ? values
         : std::memcmp(id, k_callbacks, 16) == 0 ? callbacks
         : std::memcmp(id, k_runtime, 16) == 0   ? runtime
                                                 : others;
  return k_ok;
}
STANDIN_EXPORT int cuGetErrorString(int, const char** out) {
  *out = "an error of the described card";
  return k_ok;
}
STANDIN_EXPORT int cuGetErrorName(int, const char** out) {
  *out = "CUDA_ERROR";
  return k_ok;
}
