// SPDX-License-Identifier: Apache-2.0
// HMAC-SHA256 (RFC 2104): what chat services ask of signed messages.
#pragma once

#include <string>
#include <string_view>

namespace cufit {

std::string hmac_sha256(std::string_view key, std::string_view message);  // 32 bytes

}  // namespace cufit
