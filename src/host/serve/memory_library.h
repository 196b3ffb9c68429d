// SPDX-License-Identifier: Apache-2.0
// Shared objects that travel inside cufit: opened from a file in memory, so that nothing is written anywhere.
#pragma once

#include <string_view>

#include "base/result.h"

namespace cufit::host {

// Made when cufit is built; a release has what they are for in the program.
std::string_view prometheus_library();
std::string_view ssl_names_library();
std::string_view crypto_names_library();

// The handle of dlopen(); it stays open. Error{unsupported}: a library that it needs is not here; Error{io}.
Result<void*> open_memory_library(std::string_view bytes);

}  // namespace cufit::host
