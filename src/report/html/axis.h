// SPDX-License-Identifier: Apache-2.0
// Round numbers along an axis, for plots on a terminal and on a page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cufit::report {

// 0 and its multiples of one step (1, 2 or 5 times a power of ten) up to `most`, about `about` of
// them, at least two where `most` is not 0.
std::vector<uint64_t> count_ticks(uint64_t most, unsigned about);

// The same for bytes: multiples of a round part of a GiB, a MiB or a KiB.
std::vector<uint64_t> byte_ticks(uint64_t most, unsigned about);
std::string byte_tick_text(uint64_t bytes);  // "0", "500 MiB", "2.5 GiB"

}  // namespace cufit::report
