// SPDX-License-Identifier: Apache-2.0
// Look-ups of user-visible texts; report/ fills their placeholders.
#include "knowledge/knowledge.h"

namespace cufit::knowledge {

const FindingTexts* Knowledge::find_texts(std::string_view id) const {
  for (const FindingTexts& row : findings) {
    if (row.id == id) return &row;
  }
  return nullptr;
}

std::string_view Knowledge::message(std::string_view key, std::string_view lang) const {
  for (const TextPair& pair : messages) {
    if (pair.key == key) return lang == "zh" ? pair.zh : pair.en;
  }
  return {};
}

}  // namespace cufit::knowledge
