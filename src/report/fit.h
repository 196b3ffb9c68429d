// SPDX-License-Identifier: Apache-2.0
// The answer of `cufit fit` and its two views, and what is said where there is none.
#pragma once

#include <string>

#include "fit/answer/answer.h"
#include "fit/answer/trace_failure.h"
#include "fit/step_timeline.h"
#include "report/report.h"

namespace cufit::report {

struct FitView {
  const std::string& program;  // as it was typed, or the event files
  const fit::Answer& answer;
  const knowledge::Knowledge& knowledge;
};

std::string fit_text(const FitView& view, const Style& style);
std::string fit_json(const FitView& view);  // schema cufit.fit/1
// One page without a script.
std::string fit_html(const FitView& view, const fit::StepTimeline& timeline,
                     const std::string& lang);
std::string fit_failure_text(const fit::TraceFailure& failure,
                             const knowledge::Knowledge& knowledge, const Style& style);
// Schema cufit.fit/1 with the one member `error`.
std::string fit_failure_json(const fit::TraceFailure& failure,
                             const knowledge::Knowledge& knowledge);

// A warning's sentence with its source.
std::string fit_warning_text(const fit::Warning& warning, const knowledge::Knowledge& knowledge,
                             const std::string& lang);

}  // namespace cufit::report
