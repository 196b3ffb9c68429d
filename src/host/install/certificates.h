// SPDX-License-Identifier: Apache-2.0
// The certificates that this system trusts, as one file. A distribution's own libcurl knows where it
// is; one that is linked into the program has to look.
#pragma once

#include <string>

#include "host/files/host.h"

namespace cufit::host {

// SSL_CERT_FILE, else the first of the places of Debian, Fedora and RHEL, openSUSE and Alpine that is
// there and not empty; empty: none is.
std::string certificate_bundle(const Host& host);

}  // namespace cufit::host
