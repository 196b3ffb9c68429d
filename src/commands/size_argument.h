// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace cufit::commands {

// "17.5" or "17.5GiB" or "800 MiB": bytes, rounded down. Error{usage}: names the option.
Result<uint64_t> size_argument(const std::string& option, const std::string& text);

}  // namespace cufit::commands
