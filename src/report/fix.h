// SPDX-License-Identifier: Apache-2.0
// `cufit doctor --fix`: all steps of a machine as one shell script, and as JSON cufit.fix/1.
#pragma once

#include <string>

#include "checks/install/fix_plan.h"
#include "knowledge/knowledge.h"
#include "report/report.h"

namespace cufit::report {

struct FixView {
  const checks::FixPlan& plan;
  const knowledge::Knowledge& knowledge;
};

// For sh; what a person has to do stands in comments, in the style's language. The last line says
// what the verdict will be.
std::string fix_script(const FixView& view, const Style& style);
std::string fix_json(const FixView& view);  // json/fix_json.cc

}  // namespace cufit::report
