// SPDX-License-Identifier: Apache-2.0
// Product names as people write them, cut into comparable words: "NVIDIA GeForce RTX-3090Ti GPU"
// and "rtx 3090 ti" become the same. Used by the GPU look-ups only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cufit::knowledge {

// Lower case; blanks, hyphens, brackets and underscores separate; "rtx3090" and "3090ti" are split.
// "gpu" is dropped, and with `drop_vendor` also nvidia, geforce, tesla and quadro.
std::vector<std::string> name_words(std::string_view name, bool drop_vendor);

// "12gb".
bool is_memory_size(std::string_view word);

// All of `part`, in any order, are among `whole`.
bool contains_words(const std::vector<std::string>& whole, const std::vector<std::string>& part);

}  // namespace cufit::knowledge
