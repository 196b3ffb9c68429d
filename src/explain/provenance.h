// SPDX-License-Identifier: Apache-2.0
// Whether words of a pasted line were printed by the program that failed, or are told by somebody:
// quoted, commented, remembered, written down for others. What is told proves nothing of the
// failure at hand. Used by pattern_search and outcome; judges one line at a time.
#pragma once

#include <cstddef>
#include <string_view>

namespace cufit::explain {

// A reply's quotation ("> ..."), a comment, or within quotation marks or backticks of a sentence.
// Values of a structured log ("msg=\"...\"", JSON) are no quotations.
bool is_quoted(std::string_view line, size_t column);

// What stands at `column` was printed by a program: it is not quoted, not in a line of Markdown,
// and nobody speaks before it.
bool is_program_output(std::string_view line, size_t column);

}  // namespace cufit::explain
