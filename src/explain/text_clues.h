// SPDX-License-Identifier: Apache-2.0
// Clues that take more than a pattern: comparing numbers that stand apart, and what a command line
// lacks. Names in data/clues/computed.toml. Pure.
#pragma once

#include <span>
#include <vector>

#include "explain/oom_clues.h"
#include "formats/prose/text_lines.h"

namespace cufit::explain {

std::vector<ComputedClue> text_clues(std::span<const formats::TextLine> lines);

}  // namespace cufit::explain
