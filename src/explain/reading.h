// SPDX-License-Identifier: Apache-2.0
// What the encoder reads in a text, joined to what the words say.
#pragma once

#include <span>

#include "explain/vocabulary.h"
#include "formats/prose/text_lines.h"

namespace cufit::explain {

// The votes for causes of running out of memory, after the encoder read the text too. Only short
// texts are read, and only where the words tell of memory: a log of pages is told by its signs, and
// must be answered in 15 ms.
Votes with_reading(Votes votes, std::span<const formats::TextLine> lines);

}  // namespace cufit::explain
