// SPDX-License-Identifier: Apache-2.0
// The two views of `cufit fit --plan`, parts of those of the whole answer.
#pragma once

#include <string>

#include "report/fit.h"
#include "report/json/json_value.h"

namespace cufit::report {

// A table with what switches each plan on below it; empty where there are none.
std::string fit_plans_text(const FitView& view, const Style& style);
// The number in the table of the fastest plan that fits a card; 0: none, or no plans.
size_t number_of_plan(const FitView& view, const std::string& card);
// Member `plans` of cufit.fit/1; empty where there are none.
Json fit_plans_json(const FitView& view);

}  // namespace cufit::report
