// SPDX-License-Identifier: Apache-2.0
// libcurl's functions, opened when the first of them is needed; a release has them in the program.
#pragma once

#define CURL_DISABLE_TYPECHECK  // its macros hide the functions' types
#include <curl/curl.h>

#include <string>

namespace cufit::host {

#ifdef CUFIT_LINKED
constexpr bool k_curl_is_linked = true;
#else
constexpr bool k_curl_is_linked = false;
#endif

struct Curl {
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_perform) easy_perform = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
  decltype(&::curl_version) version = nullptr;
  std::string problem;  // why some are not there; empty: all are
  bool is_missing = false;
};

const Curl& curl();

}  // namespace cufit::host
