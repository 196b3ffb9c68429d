// SPDX-License-Identifier: Apache-2.0
// The loaded objects of this process, by dl_iterate_phdr, and symbols of one of them by its own hash tables:
// dlsym is what the guard replaces, so it cannot ask that.
#pragma once

#include "platform.h"

namespace guard {

enum class Family { none, cuda, nvml };

struct Object {
  uintptr_t base = 0, begin = 0, end = 0;  // begin, end: of its PT_LOAD segments
  const char* path = "";                   // "" for the program itself
  const char* soname = "";
  const void* dynamic = nullptr;
  int position = 0;  // in load order

  bool holds(const void* address) const {
    uintptr_t at = reinterpret_cast<uintptr_t>(address);
    return at >= begin && at < end;
  }
  // Its own defined function `name`, of whichever version; null when there is none.
  void* function(const char* name) const;
  // libcuda.so.1 and libnvidia-ml.so.1 by DT_SONAME, wherever the file lies. WSL has two of the first, one in front
  // of the other.
  Family family() const;
};

// Calls visit(object) for each in load order until it returns true; whether it did.
template <class Visit>
bool each_object(Visit visit);

bool object_of(const void* address, Object* out);
bool object_of_family(Family family, Object* out);  // the first
bool within_guard(const void* address);

using VisitObject = bool (*)(const Object&, void*);
bool each_object_plain(VisitObject visit, void* data);

template <class Visit>
bool each_object(Visit visit) {
  return each_object_plain(
      [](const Object& object, void* data) { return (*static_cast<Visit*>(data))(object); },
      &visit);
}

}  // namespace guard
