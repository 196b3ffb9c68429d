// SPDX-License-Identifier: Apache-2.0
#include "host/serve/memory_library.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "formats/prose/printable.h"
#include "host/process/spawn.h"

namespace cufit::host {

Result<void*> open_memory_library(std::string_view bytes) {
  FileHandle file(memfd_create("cufit", MFD_CLOEXEC));
  size_t written = 0;
  while (file.get() >= 0 && written < bytes.size()) {
    const ssize_t count = write(file.get(), bytes.data() + written, bytes.size() - written);
    if (count <= 0) break;
    written += static_cast<size_t>(count);
  }
  if (written < bytes.size())
    return fail(Code::io, format("no file in memory can be made: {}", std::strerror(errno)));
  void* library = dlopen(format("/proc/self/fd/{}", file.get()).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) {
    // It stays open: another file of this number would have the same name, and the loader knows libraries by name.
    file.release();
    return library;
  }
  const char* why = dlerror();
  return fail(Code::unsupported, formats::printable(why == nullptr ? "" : why, 200));
}

}  // namespace cufit::host
