// SPDX-License-Identifier: Apache-2.0
// Commands in `backticks` of a text, for a reader whose shell is PowerShell or cmd: PowerShell 5
// has no `&&`, and cmd takes no single quotes.
#pragma once

#include <string>
#include <string_view>

namespace cufit::report {

std::string for_windows(std::string_view text, std::string_view lang);

}  // namespace cufit::report
