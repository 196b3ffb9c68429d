// SPDX-License-Identifier: Apache-2.0
#include "host/serve/civetweb_library.h"

#include <dlfcn.h>

#include <type_traits>

#include "base/format.h"
#include "host/serve/memory_library.h"

namespace cufit::host {
namespace {

#ifdef CUFIT_LINKED  // a release: civetweb is part of the program
#define CUFIT_CIVETWEB(name) out.name = &::mg_##name
#else
#define CUFIT_CIVETWEB(name) find("mg_" #name, out.name)
#endif

Civetweb load_civetweb() {
  Civetweb out;
#ifndef CUFIT_LINKED
  void* library = dlopen("libcivetweb.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    out.problem = "answering over HTTP needs civetweb (libcivetweb.so.1; Debian: libcivetweb1)";
    return out;
  }
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && out.problem.empty())
      out.problem = format("civetweb has no {}", name);
  };
#endif
  CUFIT_CIVETWEB(check_feature);
  CUFIT_CIVETWEB(init_library);
  CUFIT_CIVETWEB(start2);
  CUFIT_CIVETWEB(stop);
  CUFIT_CIVETWEB(get_request_info);
  CUFIT_CIVETWEB(get_header);
  CUFIT_CIVETWEB(get_user_data);
  CUFIT_CIVETWEB(get_context);
  CUFIT_CIVETWEB(get_server_ports);
  CUFIT_CIVETWEB(write);
  return out;
}

}  // namespace

const Civetweb& civetweb() {
  static const Civetweb k_civetweb = load_civetweb();
  return k_civetweb;
}

void open_openssl_names() {
#ifndef CUFIT_LINKED
  (void)open_memory_library(crypto_names_library());
  (void)open_memory_library(ssl_names_library());
#endif
}

}  // namespace cufit::host
