// SPDX-License-Identifier: Apache-2.0
#include "resolver.h"

#include <dlfcn.h>

#include "objects.h"
#include "resolver_parts.h"
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

const HookRow k_rows[] = {
#define GUARD_HOOK(symbol, name, version, stream) {#symbol, name, version, stream},
#include "hooks.inc"
#undef GUARD_HOOK
};

namespace {

// Written once each and then only read; two threads that look at once write the same.
void* g_real[k_hooks];
uintptr_t g_cuda_base;  // of the library that g_real speaks of

// Where the driver's libraries lie, so that a caller is told from them without a walk over all objects.
struct Range {
  uintptr_t begin, end;
};
Range g_driver_ranges[4];

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
  note_real(hook, found);
  return {1, own(hook)};
}

}  // namespace

void* own(int hook) {
  uintptr_t table = reinterpret_cast<uintptr_t>(guard_hook_places);
  return reinterpret_cast<void*>(table + static_cast<uintptr_t>(intptr_t{guard_hook_places[hook]}));
}

void remember_driver(const Object& object) {
  for (Range& range : g_driver_ranges) {
    if (load(range.begin) == object.begin) return;
    if (load(range.begin) != 0) continue;
    store(range.end, object.end);
    store(range.begin, object.begin);
    return;
  }
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
    forget_routes();
  }
  store(g_cuda_base, library.base);
}

uintptr_t cuda_base() { return load(g_cuda_base); }

void note_real(int hook, void* found) {
  if (!load(g_real[hook])) store(g_real[hook], found);
}

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
