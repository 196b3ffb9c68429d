// SPDX-License-Identifier: Apache-2.0
// The lines of a text that somebody pasted, as its readers take them: without colours, line breaks
// and what pasting put around them. Numbers are those of the original; some may be missing, because
// the middle of a long text is thinned out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "formats/prose/printable.h"

namespace cufit::formats {

struct TextLine {
  uint64_t number = 0;  // from 1
  std::string text;     // UTF-8, one line
};

// Every line of a short text: what tests and fuzz harnesses feed the readers.
inline std::vector<TextLine> plain_text_lines(std::string_view text) {
  std::vector<TextLine> lines;
  for (std::string_view line : split_lines(text))
    lines.push_back({lines.size() + 1, printable(line, 16384)});
  return lines;
}

}  // namespace cufit::formats
