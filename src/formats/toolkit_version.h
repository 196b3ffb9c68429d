// SPDX-License-Identifier: Apache-2.0
// The version that a CUDA toolkit folder states of itself: version.json (11.1 and newer) or version.txt (older).
// Used by the toolkit probe. The files are small; a damaged one says nothing instead of something wrong.
#pragma once

#include <string>
#include <string_view>

namespace cufit::formats {

// {"cuda": {"name": "CUDA SDK", "version": "12.4.1"}, ...}; empty when it is not said.
std::string parse_toolkit_json(std::string_view text);
// "CUDA Version 10.2.89"
std::string parse_toolkit_text(std::string_view text);

}  // namespace cufit::formats
