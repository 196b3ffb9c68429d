// SPDX-License-Identifier: Apache-2.0
// The files of src/report/notify/templates/ as they were when cufit was built: a body for each kind of receiver, and the
// systemd unit. export_template.h says how they are filled.
#pragma once

#include <string_view>

namespace cufit::report {

std::string_view notify_template(std::string_view name);  // empty for an unknown name

}  // namespace cufit::report
