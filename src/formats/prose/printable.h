// SPDX-License-Identifier: Apache-2.0
// Text from outside that ends up on a terminal or in JSON: control characters (a terminal obeys
// them), marks of the reading direction (they let one name look like another) and bytes that are no
// UTF-8 become '?', over-long texts are cut. Used by readers of single-line texts.
#pragma once

#include <string>
#include <string_view>

namespace cufit::formats {

std::string printable(std::string_view text, size_t limit = 512);

}  // namespace cufit::formats
