// SPDX-License-Identifier: Apache-2.0
// Bytes compressed without a header (RFC 1951), as a browser's DecompressionStream("deflate-raw")
// expands them. zlib's header is included in the .cc only.
#pragma once

#include <string>
#include <string_view>

namespace cufit::formats {

// `level`: zlib's, 1 (fast) to 9 (small).
std::string deflate(std::string_view bytes, int level);

}  // namespace cufit::formats
