// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: whoever asks it for a hooked function gets the guard's.
#include "platform.h"
#include "resolver_parts.h"
#include "settings.h"

namespace guard {
namespace {

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
    note_real(i, told[i]);
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

void forget_routes() { store(g_routes, static_cast<Routes*>(nullptr)); }

}  // namespace guard

using namespace guard;

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
