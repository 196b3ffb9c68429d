// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cufit {

// "17.5", "17.5GiB", "17.5 G" (GiB all) or "800 MiB" as a user writes them: bytes, rounded down. Nothing
// for 0, another unit or more than 10 PB.
std::optional<uint64_t> parse_memory_size(std::string_view text);

}  // namespace cufit
