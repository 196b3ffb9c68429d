// SPDX-License-Identifier: Apache-2.0
// `--interval` of `cufit top`, `exporter` and `watch`.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace cufit::commands {

// "0.5", "15": 0.1 to 3600 seconds. Error{usage}.
Result<double> read_interval(const std::optional<std::string>& text, double otherwise);

}  // namespace cufit::commands
