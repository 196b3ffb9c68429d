// SPDX-License-Identifier: Apache-2.0
// Which package a failed build or a failed import is about, so that a next step can be copied:
// PACKAGE and MODULE of the texts. Where the text names none, or several that compete, they stay.
// Pure.
#pragma once

#include <span>
#include <vector>

#include "explain/explain.h"
#include "formats/prose/text_lines.h"

namespace cufit::explain {

// Fills Cause::finding.args of causes about builds and extensions: "PACKAGE" (a distribution's
// name), "REQUIREMENT" (what an installer is asked for: "flash-attn==2.5.8", or an address),
// "MODULE" (what a program imports). The texts' variant is "text.wheels" where nothing of the
// package can be built from the index. Lines of evidence are still those of `lines`.
void name_packages(std::vector<Cause>& causes, std::span<const formats::TextLine> lines,
                   const knowledge::Knowledge& knowledge);

}  // namespace cufit::explain
