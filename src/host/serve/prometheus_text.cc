// SPDX-License-Identifier: Apache-2.0
#include "host/serve/prometheus_text.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "formats/prose/printable.h"
#include "host/process/spawn.h"

namespace cufit::host {
namespace {

#ifndef CUFIT_LINKED
Result<cufit_metric_page_function> open_library() {
  const std::string_view bytes = prometheus_library();
  FileHandle file(memfd_create("cufit-prometheus", MFD_CLOEXEC));
  if (file.get() < 0)
    return fail(Code::io, format("no file in memory can be made: {}", std::strerror(errno)));
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count = write(file.get(), bytes.data() + written, bytes.size() - written);
    if (count <= 0)
      return fail(Code::io, format("no file in memory can be made: {}", std::strerror(errno)));
    written += static_cast<size_t>(count);
  }
  void* library = dlopen(format("/proc/self/fd/{}", file.get()).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return fail(
        Code::unsupported,
        format(
            "the metrics page needs libprometheus-cpp-core (Debian: libprometheus-cpp-core1.0): {}",
            formats::printable(why == nullptr ? "" : why, 200)));
  }
  void* function = dlsym(library, "cufit_metric_page");
  if (function == nullptr) return fail(Code::unsupported, "the metrics page has no function");
  return reinterpret_cast<cufit_metric_page_function>(function);
}
#endif

}  // namespace

Result<cufit_metric_page_function> open_prometheus_text() {
#ifdef CUFIT_LINKED
  return &cufit_metric_page;
#else
  static const Result<cufit_metric_page_function> k_function = open_library();
  return k_function;
#endif
}

}  // namespace cufit::host
