// SPDX-License-Identifier: Apache-2.0
// Bytes as text that is safe inside HTML (RFC 4648, with padding, without line breaks).
#pragma once

#include <string>
#include <string_view>

namespace cufit {

std::string base64(std::string_view bytes);

}  // namespace cufit
