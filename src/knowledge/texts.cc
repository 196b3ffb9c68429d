// SPDX-License-Identifier: Apache-2.0
// Look-ups of user-visible texts; report/ fills their placeholders.
#include "knowledge/finding_text.h"

namespace cufit::knowledge {

const FindingTexts* Knowledge::find_texts(std::string_view id) const {
  for (const FindingTexts& row : findings) {
    if (row.id == id) return &row;
  }
  return nullptr;
}

const TextPair* find_text(const FindingTexts& texts, std::string_view key) {
  for (const TextPair& pair : texts.texts) {
    if (pair.key == key) return &pair;
  }
  return nullptr;
}

std::string_view Knowledge::message(std::string_view key, std::string_view lang) const {
  for (const TextPair& pair : messages) {
    if (pair.key == key) return lang == "zh" ? pair.zh : pair.en;
  }
  return {};
}

namespace {

template <class Row>
std::string_view chinese_in(std::span<const Row> rows, std::string_view meaning) {
  for (const Row& row : rows) {
    if (row.meaning == meaning) return row.zh;
  }
  return {};
}

}  // namespace

std::string_view Knowledge::meaning_zh(std::string_view meaning) const {
  for (const std::string_view found :
       {chinese_in(xids, meaning), chinese_in(cuda_codes, meaning), chinese_in(nvml_codes, meaning),
        chinese_in(library_codes, meaning), chinese_in(exit_codes, meaning)}) {
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace cufit::knowledge
