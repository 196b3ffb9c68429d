// SPDX-License-Identifier: Apache-2.0
// What the files of the resolver share: the table of hooks, and which driver they are of.
#pragma once

#include <stdint.h>

#include "objects.h"
#include "resolver.h"

namespace guard {

struct HookRow {
  char symbol[40];
  char name[40];
  int version;
  int stream;
};
extern const HookRow k_rows[];  // of each Hook

void* own(int hook);                         // the guard's own function
void note_real(int hook, void* found);       // what the first one found stays
void remember_driver(const Object& object);  // where its code lies, for from_driver()
void follow(const Object& library);          // it is the driver that is spoken to now
uintptr_t cuda_base();                       // of that driver; 0: none yet
void forget_routes();                        // they were of another one

}  // namespace guard
