// SPDX-License-Identifier: Apache-2.0
#include "host/serve/prometheus_text.h"

#include <dlfcn.h>

#include "base/format.h"
#include "host/serve/memory_library.h"

namespace cufit::host {
namespace {

#ifndef CUFIT_LINKED
Result<cufit_metric_page_function> open_library() {
  const Result<void*> library = open_memory_library(prometheus_library());
  if (!library)
    return fail(Code::unsupported, format("the metrics page needs libprometheus-cpp-core (Debian: "
                                          "libprometheus-cpp-core1.0): {}",
                                          library.error().what));
  void* function = dlsym(*library, "cufit_metric_page");
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
