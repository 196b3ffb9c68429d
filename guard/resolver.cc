// SPDX-License-Identifier: Apache-2.0
#include "resolver.h"

#include <dlfcn.h>
#include <string.h>

#include "objects.h"
#include "settings.h"

// Where each hook lies, as a distance from the table: addresses would be relocations, which every program that is started
// pays for.
asm(".pushsection .rodata\n.p2align 2\nguard_hook_places:\n"
#define GUARD_HOOK(symbol, name, version, stream) ".long " #symbol " - guard_hook_places\n"
#include "hooks.inc"
#undef GUARD_HOOK
    ".popsection\n");
extern "C" __attribute__((visibility("hidden"))) const int32_t guard_hook_places[];

void* guard_real_dlsym;
void* guard_real_dlvsym;

namespace guard {
namespace {

struct HookRow {
  char symbol[40];
  char name[40];
  int version;
  int stream;
};

const HookRow k_rows[] = {
#define GUARD_HOOK(symbol, name, version, stream) {#symbol, name, version, stream},
#include "hooks.inc"
#undef GUARD_HOOK
};

void* own(int hook) {
  uintptr_t table = reinterpret_cast<uintptr_t>(guard_hook_places);
  return reinterpret_cast<void*>(table + static_cast<uintptr_t>(intptr_t{guard_hook_places[hook]}));
}

// Written once each and then only read; two threads that look at once write the same.
void* g_real[k_hooks];
uintptr_t g_cuda_base;  // of the library that g_real speaks of

// What cuGetProcAddress may return, by address. Made once a driver, published when it is whole.
struct Route {
  void* address;
  Hook hook;
};
struct Routes {
  int count;
  Route rows[2 * k_hooks];

  bool knows(void* address) const {
    for (int i = 0; i < count; ++i) {
      if (rows[i].address == address) return true;
    }
    return false;
  }
  void add(void* address, int hook) {
    if (address && !knows(address) && count < 2 * k_hooks)
      rows[count++] = {address, static_cast<Hook>(hook)};
  }
};
Routes* g_routes;

// Where the driver's libraries lie, so that a caller is told from them without a walk over all objects.
struct Range {
  uintptr_t begin, end;
};
Range g_driver_ranges[4];

void remember_driver(const Object& object) {
  for (Range& range : g_driver_ranges) {
    if (load(range.begin) == object.begin) return;
    if (load(range.begin) != 0) continue;
    store(range.end, object.end);
    store(range.begin, object.begin);
    return;
  }
}

using Lookup = void* (*)(void*, const char*);
using VersionLookup = void* (*)(void*, const char*, const char*);

// The next definition behind the guard in load order, as RTLD_NEXT would have it: glibc's, or that of another
// library that also stands before it.
void* next_definition(const char* name) {
  void* found = nullptr;
  bool behind = false;
  each_object([&](const Object& object) {
    if (object.holds(reinterpret_cast<const void*>(&next_definition))) {
      behind = true;
      return false;
    }
    if (!behind) return false;
    // ld.so itself comes last or early; dlsym is in libc.so.6 (glibc 2.34) or libdl.so.2.
    found = object.function(name);
    return found != nullptr;
  });
  return found;
}

bool start_real() {
  if (load(guard_real_dlsym) && load(guard_real_dlvsym)) return true;
  SavedErrno saved;
  void* version_lookup = next_definition("dlvsym");
  void* lookup = next_definition("dlsym");
  if (!lookup || !version_lookup) return false;
  store(guard_real_dlvsym, version_lookup);
  store(guard_real_dlsym, lookup);
  return true;
}

int hook_of_symbol(const char* name) {
  bool ours = (name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z') ||
              (name[0] == 'n' && starts_with(name, "nvmlDeviceGetMemoryInfo"));
  if (!ours) return -1;
  for (int i = 0; i < k_hooks; ++i) {
    if (equal(k_rows[i].symbol, name)) return i;
  }
  return -1;
}

Family family_of(const void* address) {
  Object object;
  return object_of(address, &object) ? object.family() : Family::none;
}

// A driver that was loaded, unloaded and loaded elsewhere: the old addresses are forgotten.
void follow(const Object& library) {
  remember_driver(library);
  if (library.family() != Family::cuda || load(g_cuda_base) == library.base) return;
  if (load(g_cuda_base) != 0) {
    Object still;
    if (object_of(reinterpret_cast<void*>(load(g_cuda_base)), &still) &&
        still.family() == Family::cuda)
      return;  // a second driver: the first one stays ours
    for (int i = 0; i < hook_nvmlDeviceGetMemoryInfo; ++i)
      store(g_real[i], static_cast<void*>(nullptr));
    store(g_routes, static_cast<Routes*>(nullptr));
  }
  store(g_cuda_base, library.base);
}

// RTLD_NEXT by a caller that was loaded behind the guard: what lies behind the caller. (The real dlsym, called from
// here, would begin behind the guard and might find the caller itself.)
bool next_of_caller(const char* name, const void* caller, void** out) {
  int guard_position = -1, caller_position = -1;
  each_object([&](const Object& object) {
    if (object.holds(reinterpret_cast<const void*>(&next_of_caller)))
      guard_position = object.position;
    if (object.holds(caller)) caller_position = object.position;
    return false;
  });
  if (caller_position <= guard_position) return false;
  each_object([&](const Object& object) {
    if (object.position > caller_position) *out = object.function(name);
    return *out != nullptr;
  });
  return true;
}

template <class Real>
GuardAnswer answer(Real&& look_up, void* handle, const char* name, const void* caller) {
  if (!start_real()) return {1, nullptr};
  if (!name) return {0, nullptr};
  int hook = hook_of_symbol(name);
  if (hook < 0) return {0, nullptr};
  if (family_of(caller) != Family::none || within_guard(caller)) return {0, nullptr};
  void* found = nullptr;
  if (handle == RTLD_NEXT && next_of_caller(name, caller, &found)) {
    if (!found) return {0, nullptr};  // the real one says so, with its error text
  } else {
    found = look_up(handle);
    // The guard's own export: there is something to stand before only if another object has the name.
    if (found && within_guard(found)) found = look_up(RTLD_NEXT);
  }
  if (!found) return {1, nullptr};
  Object library;
  if (!object_of(found, &library) || library.family() == Family::none) return {1, found};
  if (!settings().hooking) return {1, found};
  follow(library);
  if (!load(g_real[hook])) store(g_real[hook], found);
  return {1, own(hook)};
}

using ProcAddress = Result(const char*, void**, int, uint64_t);
using ProcAddress2 = Result(const char*, void**, int, uint64_t, int*);

void* ask_proc_address(const char* name, int version, int stream) {
  void* found = nullptr;
  int status = 0;
  if (auto* ask = real_as<ProcAddress2>(hook_cuGetProcAddress_v2))
    return ask(name, &found, version, static_cast<uint64_t>(stream), &status) == k_ok ? found
                                                                                      : nullptr;
  if (auto* ask = real_as<ProcAddress>(hook_cuGetProcAddress))
    return ask(name, &found, version, static_cast<uint64_t>(stream)) == k_ok ? found : nullptr;
  return nullptr;
}

// One address for several names is a place holder, not the function.
bool shared_by_names(void* const (&told)[k_hooks], int index) {
  for (int i = 0; i < hook_nvmlDeviceGetMemoryInfo; ++i) {
    if (told[i] == told[index] && !equal(k_rows[i].name, k_rows[index].name)) return true;
  }
  return false;
}

// The addresses that dlsym gives, then those that cuGetProcAddress gives for each name at each version: nothing says
// that they are the same. Ascending versions, first come: a driver older than a version answers with the function
// of the version before, which has its route already.
const Routes* routes() {
  if (Routes* made = load(g_routes)) return made;
  auto* fresh = static_cast<Routes*>(map_pages(sizeof(Routes)));
  if (!fresh) return nullptr;
  each_object([](const Object& object) {
    if (object.family() == Family::cuda) remember_driver(object);
    return false;
  });
  for (int i = 0; i < hook_nvmlDeviceGetMemoryInfo; ++i) fresh->add(real(static_cast<Hook>(i)), i);
  void* told[k_hooks] = {};
  for (int i = 0; i < hook_nvmlDeviceGetMemoryInfo; ++i)
    told[i] = ask_proc_address(k_rows[i].name, k_rows[i].version, k_rows[i].stream);
  for (int i = 0; i < hook_nvmlDeviceGetMemoryInfo; ++i) {
    if (!from_driver(told[i]) || fresh->knows(told[i]) || shared_by_names(told, i)) continue;
    if (!load(g_real[i])) store(g_real[i], told[i]);
    fresh->add(told[i], i);
  }
  if (compare_set(g_routes, static_cast<Routes*>(nullptr), fresh)) return fresh;
  unmap_pages(fresh, sizeof(Routes));
  return load(g_routes);
}

// A call that makes memory of the GPU and is no row of hooks.inc. Before 3020 addresses had 32 bits.
bool unknown_allocator(const char* name, int version) {
  static const char k_starts[][24] = {"cuMemAlloc", "cuMemCreate", "cuArrayCreate",
                                      "cuArray3DCreate", "cuMipmappedArrayCreate"};
  if (version < 3020 || starts_with(name, "cuMemAllocHost")) return false;
  for (const auto& start : k_starts) {
    if (starts_with(name, start)) return true;
  }
  return false;
}

void route(const char* name, void** pointer, int version) {
  const Routes* all = routes();
  for (int i = 0; all && i < all->count; ++i) {
    if (all->rows[i].address != *pointer) continue;
    *pointer = own(all->rows[i].hook);
    return;
  }
  if (name && unknown_allocator(name, version)) note_unknown_call(name, version);
}

}  // namespace

const char* hook_symbol(Hook hook) { return k_rows[hook].symbol; }

bool from_driver(const void* address) {
  uintptr_t at = reinterpret_cast<uintptr_t>(address);
  for (const Range& range : g_driver_ranges) {
    if (at >= load(range.begin) && at < load(range.end)) return true;
  }
  return false;
}

void* real(Hook hook) {
  void* found = load(g_real[hook]);
  if (found) return found;
  Object library;
  if (!object_of_family(hook < hook_nvmlDeviceGetMemoryInfo ? Family::cuda : Family::nvml,
                        &library))
    return nullptr;
  follow(library);
  found = library.function(k_rows[hook].symbol);
  if (found) store(g_real[hook], found);
  return found;
}

void* driver_function(const char* name) {
  Object library;
  if (!object_of_family(Family::cuda, &library)) return nullptr;
  follow(library);
  return library.function(name);
}

const Driver& driver() {
  static Driver all;
  static uintptr_t base;  // of the library that `all` was filled from
  if (load(base) != 0 && load(base) == load(g_cuda_base)) return all;
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

void find_foreign(char* out, size_t size) {
  out[0] = 0;
  each_object([&](const Object& object) {
    if (object.position == 0 || object.family() != Family::none ||
        object.holds(reinterpret_cast<const void*>(&find_foreign)))
      return false;
    bool libc = starts_with(object.soname, "libc.so") || starts_with(object.soname, "libdl.so") ||
                starts_with(object.soname, "ld-linux");
    if (!object.function("cuMemAlloc_v2") && !object.function("cuGetProcAddress_v2") &&
        (libc || !object.function("dlsym")))
      return false;
    copy_text(out, size, base_name(object.path));
    return true;
  });
}

}  // namespace guard

using namespace guard;

GuardAnswer guard_ask_dlsym(void* handle, const char* name, void* caller) {
  return answer(
      [name](void* from) { return reinterpret_cast<Lookup>(guard_real_dlsym)(from, name); }, handle,
      name, caller);
}

GuardAnswer guard_ask_dlvsym(void* handle, const char* name, const char* version, void* caller) {
  return answer(
      [=](void* from) {
        return reinterpret_cast<VersionLookup>(guard_real_dlvsym)(from, name, version);
      },
      handle, name, caller);
}

GUARD_EXPORT Result cuGetProcAddress(const char* name, void** pointer, int version,
                                     uint64_t flags) {
  auto* ask = real_as<ProcAddress>(hook_cuGetProcAddress);
  if (!ask) return k_not_initialized;
  Result result = ask(name, pointer, version, flags);
  if (result == k_ok && pointer && *pointer && settings().hooking &&
      !from_driver(__builtin_return_address(0)))
    route(name, pointer, version);
  return result;
}

GUARD_EXPORT Result cuGetProcAddress_v2(const char* name, void** pointer, int version,
                                        uint64_t flags, int* status) {
  auto* ask = real_as<ProcAddress2>(hook_cuGetProcAddress_v2);
  if (!ask) return k_not_initialized;
  Result result = ask(name, pointer, version, flags, status);
  if (result == k_ok && pointer && *pointer && settings().hooking &&
      !from_driver(__builtin_return_address(0)))
    route(name, pointer, version);
  return result;
}
