// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace cufit::host {

// Another text where the file behind `path` is another one, or was written anew; empty: there is none.
std::string file_stamp(const std::string& path);

}  // namespace cufit::host
