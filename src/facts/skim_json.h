// SPDX-License-Identifier: Apache-2.0
// A large JSON text without the members that nobody asks for, before it is parsed: of a recording
// with environments nine tenths are binaries and packages.
#pragma once

#include <string>
#include <string_view>

namespace cufit::facts {

// The values of members called `name`, at most two objects deep, become null. What is no JSON stays
// as it is for the parser to name.
std::string without_member(std::string_view text, std::string_view name);

}  // namespace cufit::facts
