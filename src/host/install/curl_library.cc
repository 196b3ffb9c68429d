// SPDX-License-Identifier: Apache-2.0
#include "host/install/curl_library.h"

#include <dlfcn.h>

#include <type_traits>

#include "base/format.h"

namespace cufit::host {
namespace {

#ifdef CUFIT_LINKED  // a release: libcurl is part of the program
#define CUFIT_CURL(name) out.name = &::curl_##name
#else
#define CUFIT_CURL(name) find("curl_" #name, out.name)
#endif

Curl load_curl() {
  Curl out;
#ifndef CUFIT_LINKED
  void* library = nullptr;
  // One ABI, built with one of two TLS libraries.
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"})
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    out.is_missing = true;
    out.problem =
        "asking a package index needs libcurl (libcurl.so.4 or libcurl-gnutls.so.4; Debian: "
        "libcurl4)";
    return out;
  }
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && out.problem.empty()) out.problem = format("libcurl has no {}", name);
  };
#endif
  CUFIT_CURL(easy_cleanup);
  CUFIT_CURL(easy_getinfo);
  CUFIT_CURL(easy_init);
  CUFIT_CURL(easy_perform);
  CUFIT_CURL(easy_setopt);
  CUFIT_CURL(easy_strerror);
  CUFIT_CURL(global_init);
  CUFIT_CURL(slist_append);
  CUFIT_CURL(slist_free_all);
  CUFIT_CURL(version);
  if (out.problem.empty() && out.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    out.problem = "libcurl cannot be initialised";
  return out;
}

}  // namespace

const Curl& curl() {
  static const Curl k_curl = load_curl();
  return k_curl;
}

}  // namespace cufit::host
