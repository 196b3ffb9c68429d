// SPDX-License-Identifier: Apache-2.0
// How the reports on memory write sizes, counts and places in a program.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/footprint.h"

namespace cufit::report {

std::string gib(uint64_t bytes);         // "1.89 GiB", "24.8 MiB", "0.5 KiB"
std::string thousands(uint64_t number);  // "4,428"
std::string right(const std::string& text, int width);

// "modeling_gpt2.py:240 forward".
std::string frame_text(const memory::Snapshot& snapshot, uint32_t frame);

}  // namespace cufit::report
