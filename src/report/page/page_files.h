// SPDX-License-Identifier: Apache-2.0
// The files of src/report/page/ as they were when cufit was built (tools/embed.cmake).
#pragma once

#include <string_view>

namespace cufit::report {

// Empty for a name that does not exist. "mem_view.html"
std::string_view page_file(std::string_view name);

}  // namespace cufit::report
