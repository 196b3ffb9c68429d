// SPDX-License-Identifier: Apache-2.0
// Where a JSON text is damaged, for messages: read a second time, so only once it is known to be.
#pragma once

#include <cstddef>
#include <string_view>

namespace cufit::formats {

// Position of the first wrong byte, counted from 1; 0 where nothing tells.
size_t damaged_byte(std::string_view json);

}  // namespace cufit::formats
