// SPDX-License-Identifier: Apache-2.0
// prometheus-cpp's writer of metric pages (libprometheus-cpp-core). Its C++ library is the distribution's, cufit's is linked
// in: so the library is used by a small shared object that travels inside cufit and is opened when the first page is made.
// A release has both in the program.
#pragma once

#include "base/abi/metric_page.h"
#include "base/result.h"

namespace cufit::host {

// Opened once. Error{unsupported}: the library is not on this machine.
Result<cufit_metric_page_function> open_prometheus_text();

}  // namespace cufit::host
