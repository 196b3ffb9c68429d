// SPDX-License-Identifier: Apache-2.0
// Two libraries of one source: each adds its letter and asks the one behind it. Finds the wrong one if the look-up
// does not see who asks.
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>

extern "C" const char* chain() {
  static char text[16];
  using Function = const char*();
  auto* next = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "chain"));
  if (next == &chain) return "itself";
  std::strcpy(text, CHAIN_LETTER);
  if (next) std::strcat(text, next());
  return text;
}
