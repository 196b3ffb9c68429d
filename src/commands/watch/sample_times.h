// SPDX-License-Identifier: Apache-2.0
// `--interval` of `cufit top`, `exporter` and `watch`.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace cufit::commands {

// Rates and alarms of ten minutes need samples at least this often.
constexpr double k_most_alarm_interval = 60;

// "0.5", "15": 0.1 to `most` seconds. Error{usage}.
Result<double> read_interval(const std::optional<std::string>& text, double otherwise,
                             double most = 3600);

}  // namespace cufit::commands
