// SPDX-License-Identifier: Apache-2.0
// The same with a runtime by its path: runtime_loaded PATH anything.
#include <cstdio>

#include <dlfcn.h>

int main(int, char** arguments) {
  void* library = dlopen(arguments[1], RTLD_NOW);
  using Function = int(void**, size_t);
  auto* allocate = reinterpret_cast<Function*>(library ? dlsym(library, "cudaMalloc") : nullptr);
  if (!allocate) return 9;
  void* at = nullptr;
  std::printf("cudaMalloc: %d\n", allocate(&at, 1 << 20));
  return 0;
}
