// SPDX-License-Identifier: Apache-2.0
// One text of a finding by its key: "why", "next.text.gcc", "decide".
#pragma once

#include <string_view>

#include "knowledge/knowledge.h"

namespace cufit::knowledge {

// Null where the finding has no text of that key.
const TextPair* find_text(const FindingTexts& texts, std::string_view key);

}  // namespace cufit::knowledge
