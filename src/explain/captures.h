// SPDX-License-Identifier: Apache-2.0
// Numbers and names of the text go into the next step: [[capture]] rows of data/findings. The named
// groups of a pattern become arguments of the texts ("gcc versions later than (?P<need>\d+)"), what
// follows from them is worked out (captured_args.h), and a row's variant chooses texts of its own
// ("next.text.gcc"), also where its clues alone hold. Where no row chose one, the text's setting does
// ("next.text.podman", setting.h). A variant is taken only if all that its next step asks for is
// there. Arguments that a check gave stay.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "explain/explain.h"
#include "explain/setting.h"
#include "formats/prose/text_lines.h"
#include "knowledge/knowledge.h"

namespace cufit::explain {

// `clues`: names of those that the text holds. `facts`: what it claims.
void fill_captures(std::vector<Cause>& causes, std::span<const formats::TextLine> lines,
                   std::span<const std::string_view> clues, const facts::Facts& facts,
                   const knowledge::Knowledge& knowledge, const Setting& setting = {});

}  // namespace cufit::explain
