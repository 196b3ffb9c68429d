// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cufit {

// Length of the well-formed UTF-8 sequence at the start of `text`, which is not empty; 0 = none.
size_t utf8_length(std::string_view text);

// The number of such a sequence.
uint32_t utf8_code(std::string_view sequence);

// The sequence of a number below 2^21, surrogates too: whether it names a letter is the caller's question.
void append_utf8(std::string& out, uint32_t code);

}  // namespace cufit
