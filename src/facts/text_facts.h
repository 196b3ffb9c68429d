// SPDX-License-Identifier: Apache-2.0
// Facts from whatever a user pasted: every reader of formats/ looks at the text, and what they
// found becomes `claimed` facts with "name:line" as source. Used by `cufit explain`.
//
// A text may speak of several machines, and of what was before. Of contradicting claims of equal
// weight none is chosen: the fact is missing (`malformed`) with a note that names both lines.
// Weight comes from the text alone: what a program says of itself goes before prose, what an
// installer did last before what was there, prose before what was only asked for.
#pragma once

#include <span>
#include <string>

#include "formats/prose/text_lines.h"
#include "facts/facts.h"

namespace cufit::facts {

// `name` is what sources call the text ("log.txt"). Never fails: a text without facts has none.
Facts facts_from_text(std::span<const formats::TextLine> lines, const std::string& name);

}  // namespace cufit::facts
