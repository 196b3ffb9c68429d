// SPDX-License-Identifier: Apache-2.0
#include "host/driver/library_opens.h"

#include <dlfcn.h>

namespace cufit::host {

bool library_opens(const char* name) {
  void* handle = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return false;
  ::dlclose(handle);
  return true;
}

}  // namespace cufit::host
