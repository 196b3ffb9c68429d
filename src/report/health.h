// SPDX-License-Identifier: Apache-2.0
// `cufit doctor --fast`: the word on a node, for people, schedulers and programs.
#pragma once

#include <string>

#include "checks/health/health.h"
#include "report/report.h"

namespace cufit::report {

struct HealthView {
  const facts::Facts& facts;
  const checks::HealthReport& report;
  const knowledge::Knowledge& knowledge;
};

// node: "usable: ..."; nagios: "OK - ...", "WARNING - ...", "CRITICAL - ...", "UNKNOWN - ...".
enum class ExitStyle { node, nagios };

// At most 80 columns, without a line break.
std::string health_line(const HealthView& view, ExitStyle exit_style, const Style& style);
// That line, then each finding with its next step; with -v all rules. terminal/health_text.cc
std::string health_text(const HealthView& view, ExitStyle exit_style, const Style& style);
// doctor's JSON without chains, with "action" and "health". json/health_json.cc
std::string health_json(const HealthView& view);

}  // namespace cufit::report
