// SPDX-License-Identifier: Apache-2.0
// Columns that a text takes on a terminal (CJK counts two) and wrapping by columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cufit::report {

int columns(std::string_view utf8);
// Wraps at spaces and between wide characters; never breaks inside a `back-quoted` span.
std::vector<std::string> wrap(std::string_view utf8, int width);
std::string pad(std::string_view utf8, int width);

}  // namespace cufit::report
