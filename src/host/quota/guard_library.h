// SPDX-License-Identifier: Apache-2.0
// The guard (guard/README.md), as the bytes of libcufit-guard.so for this machine's architecture. Made when cufit is built.
// Whoever starts programs under it writes it to a file whose path has no blank and no colon (LD_PRELOAD parts files by
// these), puts that first into LD_PRELOAD, keeping what stands there, and names the domain's file in CUFIT_DOMAIN by its
// absolute path. Both files stay until the last child has started.
#pragma once

#include <string_view>

namespace cufit::host {

std::string_view guard_library();

}  // namespace cufit::host
