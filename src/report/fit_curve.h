// SPDX-License-Identifier: Apache-2.0
// Memory against batch size on a terminal: the numbers, and beside them a plot where it is wide
// enough, bars where it is not.
#pragma once

#include "report/fit.h"

namespace cufit::report {

// With its heading; empty where there are fewer than two points.
std::string fit_curve(const FitView& view, const Style& style);

}  // namespace cufit::report
