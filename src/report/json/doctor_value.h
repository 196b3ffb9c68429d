// SPDX-License-Identifier: Apache-2.0
// doctor's JSON as a value, for answers that are more than it.
#pragma once

#include "base/json.h"
#include "report/report.h"

namespace cufit::report {

Json doctor_value(const DoctorView& view);

}  // namespace cufit::report
