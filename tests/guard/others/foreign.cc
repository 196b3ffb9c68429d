// SPDX-License-Identifier: Apache-2.0
// Another library that stands before the driver by LD_PRELOAD, as quotas of others do: it has cuMemAlloc_v2 and finds the next
// one behind itself.
#include <cstddef>
#include <cstdint>

#include <dlfcn.h>

static int g_calls;

extern "C" int cuMemAlloc_v2(uint64_t* out, size_t bytes) {
  using Function = int(uint64_t*, size_t);
  static Function* next = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "cuMemAlloc_v2"));
  if (++g_calls > 100 || !next) return 999;
  return next(out, bytes);
}
