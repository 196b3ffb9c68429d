// SPDX-License-Identifier: Apache-2.0
// `cufit doctor --fast`: may this node be given new work? The one question that schedulers ask.
#pragma once

#include "commands/doctor/doctor.h"

namespace cufit::commands {

// 0 usable, 1 not usable, 2 could not tell; --exit-style nagios: 0 OK, 1 WARNING, 2 CRITICAL, 3
// UNKNOWN. What goes wrong with cufit's own work is "could not tell": it takes no node out.
int run_doctor_fast(const Context& context, const DoctorRequest& request);

}  // namespace cufit::commands
