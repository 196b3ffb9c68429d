// SPDX-License-Identifier: Apache-2.0
// Chinese text in GBK (GB 18030, what Chinese Windows and many old logs write) to UTF-8, told from
// other bytes that are no UTF-8 by the characters it holds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cufit::formats {

// One line. nullopt: it is UTF-8 as it is, or does not read as Chinese text in GBK, or this C
// library has no converter for it.
std::optional<std::string> utf8_of_gbk(std::string_view line);

}  // namespace cufit::formats
