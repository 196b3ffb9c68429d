// SPDX-License-Identifier: Apache-2.0
// data/vocabulary.toml, as learn/learn.py writes it, to the arrays of knowledge.h.
#include <charconv>
#include <sstream>

#include "gen_tables.h"

namespace gen {
namespace {

// "bus 31 worker -2": words and whole numbers in turn.
std::vector<std::pair<std::string, int>> words_of(const toml::table& table, const char* key,
                                                  const std::string& file) {
  std::vector<std::pair<std::string, int>> out;
  const auto* text = table.get_as<std::string>(key);
  if (!text) {
    report(file, table.source(), std::string("lacks `") + key + "`");
    return out;
  }
  std::istringstream in(**text);
  std::string word, number;
  while (in >> word >> number) {
    int value = 0;
    const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || stop != number.data() + number.size() || value > 30000 ||
        value < -30000)
      report(file, text->source(), "`" + word + " " + number + "` is no word and number");
    out.emplace_back(word, value);
  }
  return out;
}

}  // namespace

std::string vocabulary_cpp(const std::filesystem::path& path, Pool& pool, std::string& members) {
  if (!std::filesystem::exists(path)) return {};
  const std::string file = path.string();
  std::optional<toml::table> root = parse(path);
  if (!root) return {};
  const toml::table* table = root->get_as<toml::table>("vocabulary");
  const toml::table* causes = table ? table->get_as<toml::table>("cause") : nullptr;
  if (!causes) {
    report(file, root->source(), "no table [vocabulary.cause]");
    return {};
  }
  if (!table->get_as<std::string>("source") || !table->get("date"))
    report(file, table->source(), "table without `source` or `date`");
  struct Word {
    int rarity = 0;
    std::vector<std::pair<size_t, int>> weights;  // cause, weight
  };
  std::map<std::string, Word> words;  // sorted as the search needs it
  for (const auto& [word, rarity] : words_of(*table, "rarity", file)) words[word].rarity = rarity;
  std::string cause_rows, word_rows, weight_rows;
  size_t number = 0;
  for (const auto& [id, node] : *causes) {
    const toml::table* cause = node.as_table();
    if (!cause) {
      report(file, node.source(), "`" + std::string(id.str()) + "` is no table");
      continue;
    }
    const std::optional<double> bias = (*cause)["bias"].value<double>();
    if (!bias) report(file, cause->source(), "lacks `bias`");
    std::ostringstream text;
    text << bias.value_or(0.0);
    const bool memory = (*cause)["memory"].value_or(false);
    cause_rows += "  {" + quote(id.str()) + ", " + text.str() + (memory ? ", true" : "") + "},\n";
    for (const auto& [word, weight] : words_of(*cause, "words", file)) {
      if (!words.count(word)) report(file, cause->source(), "`" + word + "` has no rarity");
      words[word].weights.emplace_back(number, weight);
    }
    ++number;
  }
  size_t begin = 0;
  for (const auto& [text, word] : words) {
    word_rows += "  {" + pool.add(text) + ", " + std::to_string(word.rarity) + ", " +
                 std::to_string(begin) + ", " + std::to_string(word.weights.size()) + "},\n";
    for (const auto& [cause, weight] : word.weights)
      weight_rows += "{" + std::to_string(cause) + ", " + std::to_string(weight) + "}, ";
    begin += word.weights.size();
  }
  members +=
      "  .vocabulary_causes = k_vocabulary_causes,\n  .vocabulary_words = k_vocabulary_words,\n"
      "  .vocabulary_weights = k_vocabulary_weights,\n  .weight_scale = " +
      std::to_string((*table)["scale"].value_or(int64_t{1})) +
      ",\n  .clue_length = " + std::to_string((*table)["clue_length"].value_or(0.0)) + ",\n";
  return "constexpr VocabularyCause k_vocabulary_causes[] = {\n" + cause_rows +
         "};\nconstexpr VocabularyWord k_vocabulary_words[] = {\n" + word_rows +
         "};\nconstexpr VocabularyWeight k_vocabulary_weights[] = {\n" + weight_rows + "\n};\n";
}

}  // namespace gen
