// SPDX-License-Identifier: Apache-2.0
// data/findings/<id>.toml and data/clues/*.toml: texts, signatures and clues; see data/README.md.
#include <re2/re2.h>

#include <algorithm>

#include "gen_tables.h"

namespace fs = std::filesystem;

namespace gen {
namespace {

// Names in braces; "{medium: Memory}" of YAML and "{}" of a shell are none.
std::set<std::string> placeholders(std::string_view text) {
  std::set<std::string> out;
  for (size_t at = text.find('{'); at != text.npos; at = text.find('{', at + 1)) {
    const size_t end = std::min(
        text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", at + 1), text.size());
    if (end > at + 1 && end < text.size() && text[end] == '}')
      out.insert(std::string(text.substr(at + 1, end - at - 1)));
  }
  return out;
}

// `args` lists what a check supplies for this finding: no text may ask for more, a title may ask
// for nothing (it is also printed where only the id is known), and both languages ask for the same.
void check_placeholders(const toml::table& root, const Texts& texts, const std::string& file) {
  std::set<std::string> args;
  const toml::array* list = root.get_as<toml::array>("args");
  if (!list) return report(file, root.source(), "lacks `args`");
  for (const toml::node& item : *list) args.insert(item.value_or(std::string()));
  for (const auto& [key, text] : texts) {
    const std::set<std::string> en = placeholders(text.en);
    if (en != placeholders(text.zh))
      report(file, root.source(), "`" + key + "`: en and zh differ in placeholders");
    if (!en.empty() && key.compare(0, 5, "title") == 0)
      report(file, root.source(), "a title has no placeholders");
    for (const std::string& name : en) {
      if (!args.count(name))
        report(file, root.source(), "`" + key + "` asks for {" + name + "}, not in `args`");
    }
  }
}

std::vector<std::string> strings(const toml::table& table, const char* key,
                                 const std::string& file) {
  std::vector<std::string> out;
  const toml::node* node = table.get(key);
  if (!node) return out;
  const toml::array* list = node->as_array();
  if (!list) {
    report(file, node->source(), std::string("`") + key + "` is no list");
    return out;
  }
  for (const toml::node& item : *list) {
    if (const auto* text = item.as_string()) {
      out.push_back(**text);
    } else {
      report(file, item.source(), std::string("`") + key + "` holds only strings");
    }
  }
  return out;
}

// Writes `constexpr std::string_view NAME[]` and returns NAME, or "{}" for an empty list (C++ has
// no empty arrays).
std::string names_array(const std::vector<std::string>& names, const std::string& name,
                        std::string& arrays) {
  if (names.empty()) return "{}";
  arrays += "constexpr std::string_view " + name + "[] = {";
  for (const std::string& item : names) arrays += quote(item) + ", ";
  arrays += "};\n";
  return name;
}

// Every pattern once, whichever clues and signs share it, and the words that lead to them.
class Patterns {
 public:
  // Writes the numbers of the patterns of `table` as an array and returns its name, or "{}".
  std::string array(const toml::table& table, const std::string& name, const std::string& file,
                    std::string& arrays) {
    const std::vector<std::string> patterns = strings(table, "any", file);
    if (patterns.empty()) return "{}";
    arrays += "constexpr uint32_t " + name + "[] = {";
    for (const std::string& pattern : patterns) {
      auto [number, is_new] = numbers_.try_emplace(pattern, rows_.size());
      if (is_new) {
        std::string why;
        rows_.push_back(parts_of(pattern, why));
        if (!why.empty()) report(file, table.get("any")->source(), "`" + pattern + "`: " + why);
        words_[rows_.back().word].push_back(number->second);
      }
      arrays += std::to_string(number->second) + ", ";
    }
    arrays += "};\n";
    return name;
  }

  std::string cpp(Pool& pool, std::string& members) const {
    if (rows_.empty()) return {};
    std::string rows, words, of_words;
    for (const PatternParts& row : rows_) {
      rows += "  {" + pool.add(row.re) + ", " + pool.add(row.plain) + ", " + pool.add(row.shape) +
              "},\n";
    }
    size_t begin = 0;
    for (const auto& [word, patterns] : words_) {
      words += "  {" + pool.add(word) + ", " + std::to_string(begin) + ", " +
               std::to_string(patterns.size()) + "},\n";
      for (size_t number : patterns) of_words += std::to_string(number) + ", ";
      begin += patterns.size();
    }
    members +=
        "  .pool = std::string_view(k_pool, sizeof k_pool - 1),\n  .patterns = k_patterns,\n  "
        ".words = k_words,\n  .word_patterns = k_word_patterns,\n";
    return "constexpr PatternRow k_patterns[] = {\n" + rows +
           "};\nconstexpr WordRow k_words[] = {\n" + words +
           "};\nconstexpr uint32_t k_word_patterns[] = {" + of_words + "};\n";
  }

 private:
  std::map<std::string, size_t> numbers_;
  std::vector<PatternParts> rows_;
  std::map<std::string, std::vector<size_t>> words_;
};

// The file of the clues that the program computes (explain/oom_clues.cc, explain/text_clues.cc),
// and `oom`, which numbers and patterns give.
bool is_computed(const fs::path& file) { return file.stem() == "computed"; }

struct Uses {  // of clue names, checked once all clues are known
  std::string file, clue;
  toml::source_region at;
};

struct Output {
  explicit Output(Patterns& all) : patterns(all) {}
  Patterns& patterns;
  std::string arrays, rows;
  std::vector<Uses> uses;
};

void use(Output& out, const std::string& file, const toml::node& where,
         const std::vector<std::string>& clues) {
  for (const std::string& clue : clues) {
    out.uses.push_back(
        {file, clue.compare(0, 1, "!") == 0 ? clue.substr(1) : clue, where.source()});
  }
}

// [[sign]] tables of one finding: returns the name of their array, or "{}".
std::string signs_array(const toml::table& root, const std::string& id, const std::string& file,
                        Output& out) {
  static const std::set<std::string> known = {"any",     "with",    "weight",
                                              "certain", "variant", "note"};
  const toml::array* signs = root.get_as<toml::array>("sign");
  if (!signs) return "{}";
  std::string rows;
  for (size_t i = 0; i < signs->size(); ++i) {
    const toml::table* sign = (*signs)[i].as_table();
    if (!sign) {
      report(file, (*signs)[i].source(), "`sign` is no table");
      continue;
    }
    for (const auto& [key, value] : *sign) {
      if (!known.count(std::string(key.str())))
        report(file, value.source(), "unknown key `" + std::string(key.str()) + "` in `sign`");
    }
    const int64_t weight = (*sign)["weight"].value_or(int64_t{0});
    if (weight < 1 || weight > 99) report(file, sign->source(), "`weight` is from 1 to 99");
    const std::string tail = id + "_" + std::to_string(i);
    const std::vector<std::string> with = strings(*sign, "with", file);
    if (!sign->contains("any") && std::none_of(with.begin(), with.end(), [](const std::string& w) {
          return w.compare(0, 1, "!") != 0;
        }))
      report(file, sign->source(), "a sign needs `any` or a clue in `with`");
    use(out, file, *sign, with);
    rows += "  {" + out.patterns.array(*sign, "k_sign_" + tail, file, out.arrays) + ", " +
            names_array(with, "k_with_" + tail, out.arrays) + ", " + std::to_string(weight) +
            ((*sign)["certain"].value_or(false) ? ", true, " : ", false, ") +
            quote((*sign)["variant"].value_or(std::string())) + "},\n";
  }
  out.arrays += "constexpr SignRow k_signs_" + id + "[] = {\n" + rows + "};\n";
  return "k_signs_" + id;
}

// [[capture]] tables of one finding: returns the name of their array, or "{}".
std::string captures_array(const toml::table& root, const std::string& id, const std::string& file,
                           Output& out) {
  static const std::set<std::string> known = {"pattern", "with", "variant", "note"};
  const toml::array* captures = root.get_as<toml::array>("capture");
  if (!captures) return "{}";
  std::string rows;
  for (size_t i = 0; i < captures->size(); ++i) {
    const toml::table* capture = (*captures)[i].as_table();
    if (!capture) {
      report(file, (*captures)[i].source(), "`capture` is no table");
      continue;
    }
    for (const auto& [key, value] : *capture) {
      if (!known.count(std::string(key.str())))
        report(file, value.source(), "unknown key `" + std::string(key.str()) + "` in `capture`");
    }
    const std::string pattern = (*capture)["pattern"].value_or(std::string());
    const std::vector<std::string> with = strings(*capture, "with", file);
    std::string blanks = pattern;  // a blank stands for any white space, as in signs
    RE2::GlobalReplace(&blanks, R"( \?)", R"(\\s*)");
    RE2::GlobalReplace(&blanks, " ", R"(\\s+)");
    const RE2 compiled(blanks, RE2::Quiet);
    if (!compiled.ok()) report(file, capture->source(), "`" + pattern + "`: " + compiled.error());
    if (pattern.empty() && with.empty())
      report(file, capture->source(), "a capture needs `pattern` or `with`");
    if (pattern.find("(?P<") == std::string::npos && !capture->contains("variant"))
      report(file, capture->source(), "a capture needs a named group or `variant`");
    use(out, file, *capture, with);
    rows += "  {" + quote(blanks) + ", " +
            names_array(with, "k_capture_with_" + id + "_" + std::to_string(i), out.arrays) + ", " +
            quote((*capture)["variant"].value_or(std::string())) + ", " + quote(words_of(blanks)) +
            "},\n";
  }
  out.arrays += "constexpr CaptureRow k_captures_" + id + "[] = {\n" + rows + "};\n";
  return "k_captures_" + id;
}

// A list of lists of clues: returns the name of its array, or "{}".
std::string clue_lists(const toml::table& root, const char* key, const std::string& id,
                       const std::string& file, Output& out) {
  const toml::array* lists = root.get_as<toml::array>(key);
  if (!lists) {
    if (root.contains(key)) report(file, root.source(), std::string("`") + key + "` is no list");
    return "{}";
  }
  std::string rows;
  for (size_t i = 0; i < lists->size(); ++i) {
    // strings() reads a key of a table.
    const toml::table row{{key, (*lists)[i]}};
    const std::vector<std::string> clues = strings(row, key, file);
    if (clues.empty()) report(file, root.source(), std::string("`") + key + "` has an empty list");
    use(out, file, root, clues);
    rows += names_array(clues, "k_" + std::string(key) + "_" + id + "_" + std::to_string(i),
                        out.arrays) +
            ", ";
  }
  const std::string name = "k_" + std::string(key) + "_" + id;
  out.arrays += "constexpr std::span<const std::string_view> " + name + "[] = {" + rows + "};\n";
  return name;
}

void read_finding(const fs::path& path, Output& out) {
  std::optional<toml::table> root = parse(path);
  if (!root) return;
  static const std::set<std::string> known = {"id",      "layer",    "action",  "source", "args",
                                              "against", "explains", "doubted", "sure",   "en",
                                              "zh",      "sign",     "capture"};
  const std::string file = path.string(), id = path.stem().string();
  for (const auto& [key, value] : *root) {
    if (!known.count(std::string(key.str())))
      report(file, value.source(), "unknown key `" + std::string(key.str()) + "`");
  }
  for (const char* key : {"id", "layer", "action", "source"}) {
    if (!root->get_as<std::string>(key))
      report(file, root->source(), std::string("lacks `") + key + "`");
  }
  if ((*root)["id"].value_or(std::string()) != id)
    report(file, root->source(), "`id` is not the file's name");
  Texts texts;
  for (const char* lang : {"en", "zh"}) {
    const toml::table* table = root->get_as<toml::table>(lang);
    if (table) flatten(*table, "", lang, file, texts);
  }
  for (const char* key : {"title", "why", "next"}) {
    if (!texts.count(key))
      report(file, root->source(), std::string("lacks the text `") + key + "`");
  }
  check_placeholders(*root, texts, file);
  const std::vector<std::string> against = strings(*root, "against", file);
  use(out, file, *root, against);
  const std::string signs = signs_array(*root, id, file, out);
  out.arrays += "constexpr TextPair k_texts_" + id + "[] = {\n" +
                text_pairs(texts, file, root->source()) + "};\n";
  out.rows += "  {" + quote(id) + ", " + quote((*root)["layer"].value_or(std::string())) + ", " +
              quote((*root)["action"].value_or(std::string())) + ", k_texts_" + id + ", " + signs +
              ", " + names_array(against, "k_against_" + id, out.arrays) + ", " +
              names_array(strings(*root, "explains", file), "k_explains_" + id, out.arrays) + ", " +
              quote((*root)["source"].value_or(std::string())) + ", " +
              clue_lists(*root, "doubted", id, file, out) + ", " +
              clue_lists(*root, "sure", id, file, out) + ", " +
              captures_array(*root, id, file, out) + "},\n";
}

void read_clues(const fs::path& path, std::set<std::string>& names, Output& out) {
  std::optional<toml::table> root = parse(path);
  if (!root) return;
  const std::string file = path.string();
  for (const auto& [key, value] : *root) {
    if (key.str() != "clue") report(file, value.source(), "only [clue.<name>] tables here");
  }
  const toml::table* clues = root->get_as<toml::table>("clue");
  if (!clues) return;
  for (const auto& [key, value] : *clues) {
    const std::string id(key.str());
    const toml::table* clue = value.as_table();
    if (!clue) {
      report(file, value.source(), "`" + id + "` is no table");
      continue;
    }
    for (const auto& [name, node] : *clue) {
      if (name.str() != "any" && name.str() != "en" && name.str() != "zh" && name.str() != "note" &&
          name.str() != "gate")
        report(file, node.source(), "unknown key `" + std::string(name.str()) + "` in a clue");
    }
    if (!names.insert(id).second) report(file, value.source(), "`" + id + "` exists already");
    const auto* en = clue->get_as<std::string>("en");
    const auto* zh = clue->get_as<std::string>("zh");
    if (!en || !zh) report(file, value.source(), "`" + id + "` lacks `en` or `zh`");
    if (!clue->contains("any") && !is_computed(path))
      report(file, value.source(), "`" + id + "` has no patterns");
    out.rows += "  {" + quote(id) + ", " + quote(en ? **en : "") + ", " + quote(zh ? **zh : "") +
                ", " + out.patterns.array(*clue, "k_clue_" + id, file, out.arrays) +
                ((*clue)["gate"].value_or(false) ? ", true" : ", false") + "},\n";
  }
}

}  // namespace

std::string findings_cpp(const fs::path& data, Pool& pool, std::string& members) {
  Patterns patterns;
  Output findings(patterns), clues(patterns);
  for (const fs::path& path : toml_files(data / "findings")) read_finding(path, findings);
  std::set<std::string> names;
  for (const fs::path& path : toml_files(data / "clues")) read_clues(path, names, clues);
  for (const Uses& used : findings.uses) {
    if (!names.count(used.clue)) report(used.file, used.at, "no clue `" + used.clue + "`");
  }
  std::string out = findings.arrays + clues.arrays;
  if (!findings.rows.empty()) {
    members += "  .findings = k_findings,\n";
    out += "constexpr FindingTexts k_findings[] = {\n" + findings.rows + "};\n";
  }
  if (!clues.rows.empty()) {
    members += "  .clues = k_clues,\n";
    out += "constexpr ClueRow k_clues[] = {\n" + clues.rows + "};\n";
  }
  out += patterns.cpp(pool, members);
  return out;
}

}  // namespace gen
