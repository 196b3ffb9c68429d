// SPDX-License-Identifier: Apache-2.0
// civetweb's functions, opened when the first of them is needed; a release has them in the program.
#pragma once

#include <civetweb.h>

#include <string>

namespace cufit::host {

struct Civetweb {
  decltype(&::mg_check_feature) check_feature = nullptr;
  decltype(&::mg_init_library) init_library = nullptr;
  decltype(&::mg_start2) start2 = nullptr;
  decltype(&::mg_stop) stop = nullptr;
  decltype(&::mg_get_request_info) get_request_info = nullptr;
  decltype(&::mg_get_header) get_header = nullptr;
  decltype(&::mg_get_user_data) get_user_data = nullptr;
  decltype(&::mg_get_context) get_context = nullptr;
  decltype(&::mg_get_server_ports) get_server_ports = nullptr;
  decltype(&::mg_write) write = nullptr;
  std::string problem;  // why some are not there; empty: all are
};

const Civetweb& civetweb();

// Before its TLS begins: openssl_names.c says why. Where OpenSSL 3 is not here, civetweb looks for another by itself.
void open_openssl_names();

}  // namespace cufit::host
