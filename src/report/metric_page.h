// SPDX-License-Identifier: Apache-2.0
// The pages of `cufit exporter`: metrics in Prometheus' text format, which prometheus-cpp writes, and the page at "/".
#pragma once

#include <span>
#include <string>

#include "base/abi/metric_page.h"
#include "base/result.h"
#include "watch/metrics.h"

namespace cufit::report {

constexpr std::string_view k_metric_page_type = "text/plain; version=0.0.4; charset=utf-8";

// `write`: host/serve/prometheus_text.h. Error{io}: there is no memory for it.
Result<std::string> metric_page(std::span<const watch::MetricFamily> families,
                                cufit_metric_page_function write);

// HTML: what this is, and where the metrics are.
std::string exporter_home_page();

}  // namespace cufit::report
