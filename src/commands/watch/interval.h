// SPDX-License-Identifier: Apache-2.0
// How often the driver is asked: `--interval` of `cufit top` and `watch`.
#pragma once

#include <string>

#include "base/result.h"

namespace cufit::commands {

// Seconds of "0.5", "15"; Error{usage} below 0.1 and above 3600.
Result<double> parse_interval(const std::string& text);

}  // namespace cufit::commands
