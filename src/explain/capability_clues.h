// SPDX-License-Identifier: Apache-2.0
// What a text's compute capabilities say, compared as numbers: torch's own warnings in their three
// wordings, nvcc's architectures against its version, the wheel that the text names against its GPU.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "explain/oom_clues.h"
#include "facts/facts.h"
#include "formats/prose/text_lines.h"
#include "knowledge/knowledge.h"

namespace cufit::explain {

// "arch_below_list", "arch_above_list", or "arch_covered": newer than the list only by its minor
// number, and code of one major runs on all later minors of it.
std::optional<ComputedClue> compare_capability(std::span<const formats::TextLine> lines);

// "torch_has_code": by the wheel table, the torch of the text has code for each GPU of it.
// "nvcc_arch_dropped": nvcc was asked for an architecture that its version no longer makes.
std::vector<ComputedClue> capability_clues(std::span<const formats::TextLine> lines,
                                           const facts::Facts& facts,
                                           const knowledge::Knowledge& knowledge);

}  // namespace cufit::explain
