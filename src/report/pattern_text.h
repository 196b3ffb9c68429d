// SPDX-License-Identifier: Apache-2.0
// A pattern of a signature as a person would quote the message that it finds: of alternatives the
// first, numbers as N, gaps as "...". For docs/causes.md; nothing is matched with it.
#pragma once

#include <string>
#include <string_view>

namespace cufit::report {

std::string pattern_text(std::string_view pattern);

}  // namespace cufit::report
