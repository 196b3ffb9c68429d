// SPDX-License-Identifier: Apache-2.0
// How callers reach the driver, and where the guard comes in. Nothing is decided by a name and a version alone: the
// real look-up answers first, and a pointer of its answer is exchanged if it is one of the functions of hooks.inc.
// Three ways: dlsym on a handle, cuGetProcAddress, and (Triton) a program linked to libcuda, for which the
// guard exports the same names.
#pragma once

#include "driver.h"

namespace guard {

// This address lies in the driver itself (its own look-ups are never diverted; WSL's front library would find
// itself).
bool from_driver(const void* address);

// The object that called, for records.
const char* hook_symbol(Hook hook);

// Another library between programs and the driver: one that is neither the driver nor the guard and exports the
// driver's calls, or dlsym. Writes its file name, or "".
void find_foreign(char* out, size_t size);

// Called with names of allocating calls that the driver has and hooks.inc has not.
void note_unknown_call(const char* name, int version);

}  // namespace guard

struct GuardAnswer {
  uintptr_t mine;
  void* value;
};
extern "C" {
__attribute__((visibility("hidden"))) extern void* guard_real_dlsym;
__attribute__((visibility("hidden"))) extern void* guard_real_dlvsym;
__attribute__((visibility("hidden"))) GuardAnswer guard_ask_dlsym(void*, const char*, void*);
__attribute__((visibility("hidden"))) GuardAnswer guard_ask_dlvsym(void*, const char*, const char*,
                                                                   void*);
}
