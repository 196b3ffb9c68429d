// SPDX-License-Identifier: Apache-2.0
// The pictures of fit's page. Each is drawn twice, for a wide and a narrow screen, of which the
// style sheet shows one. Used by fit_page.cc.
#pragma once

#include <string>

#include "fit/step_timeline.h"
#include "report/fit.h"

namespace cufit::report {

// Memory against batch size: point and upper values, the cards that were asked for as lines. Empty
// where there are fewer than two points.
std::string fit_curve_chart(const FitView& view, const std::string& lang);

// Allocated and reserved memory over the events of the traced steps. Empty where nothing ran.
std::string fit_timeline_chart(const FitView& view, const fit::StepTimeline& timeline,
                               const std::string& lang);

// What the peak holds as one bar, and a legend with the numbers.
std::string fit_parts_chart(const FitView& view, const std::string& lang);

}  // namespace cufit::report
