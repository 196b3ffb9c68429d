// SPDX-License-Identifier: Apache-2.0
// docs/causes.md from the tables: how each cause is recognised, why it happens, how it is fixed,
// what decides. GitHub's Markdown; the id is the heading, so that it can be linked to.
#include <algorithm>
#include <set>

#include "base/format.h"
#include "knowledge/finding_text.h"
#include "report/explain.h"
#include "report/pattern_text.h"

namespace cufit::report {
namespace {

using knowledge::FindingTexts;
using knowledge::SignRow;

constexpr size_t k_messages = 8, k_messages_of_a_sign = 4, k_combinations = 3;
constexpr size_t k_shortest = 8, k_longest = 110;
constexpr int k_telling = 60;  // weaker patterns are shown only where there are no others

// From the board up to the program; layers that are not listed follow.
constexpr std::string_view k_layers[] = {
    "hardware",  "platform", "kernel-driver", "driver-runtime", "wsl",
    "container", "host",     "libraries",     "environment",    "torch-build",
    "extension", "build",    "distributed",   "multi-gpu",      "application",
    "capacity",  "growth",   "allocator",     "outside",        "quota",
    "serving",   "bug"};
constexpr std::string_view k_languages[] = {"en", "zh"};

bool has_text(const FindingTexts& finding, std::string_view key) {
  return knowledge::find_text(finding, key) != nullptr;
}

// Outside of `code` the characters that Markdown would take for its own.
std::string escaped(std::string_view text) {
  std::string out;
  bool code = false;
  for (char c : text) {
    if (c == '`') code = !code;
    if (!code && c == '<') {
      out += "&lt;";
      continue;
    }
    if (!code && (c == '*' || c == '_' || c == '[')) out += '\\';
    out += c;
  }
  return out;
}

class CausesPage {
 public:
  explicit CausesPage(const knowledge::Knowledge& knowledge) : knowledge_(knowledge) {
    for (std::string_view layer : k_layers) layers_.push_back(layer);
    for (const FindingTexts& finding : knowledge.findings) {
      if (finding.signs.empty() && !has_text(finding, "decide")) continue;
      causes_.push_back(&finding);
      if (std::find(layers_.begin(), layers_.end(), finding.category) == layers_.end())
        layers_.push_back(finding.category);
    }
  }

  std::string write() {
    out_ = "# " + say("head", "en") + " / " + say("head", "zh") + "\n";
    for (std::string_view lang : k_languages) out_ += "\n" + say("intro", lang) + "\n";
    contents();
    for (std::string_view layer : layers_) {
      bool first = true;
      for (const FindingTexts* cause : causes_) {
        if (cause->category != layer) continue;
        if (first) out_ += "\n## " + layer_name(layer) + "\n";
        first = false;
        this->cause(*cause);
      }
    }
    return std::move(out_);
  }

 private:
  std::string say(const std::string& key, std::string_view lang,
                  const std::map<std::string, std::string>& args = {}) const {
    return message(knowledge_, "explain.page." + key, lang, args);
  }
  std::string layer_name(std::string_view layer) const {
    const std::string key = "explain.layer." + std::string(layer);
    const std::string en(knowledge_.message(key, "en")), zh(knowledge_.message(key, "zh"));
    if (en.empty()) return std::string(layer);
    return en == zh ? en : en + " / " + zh;
  }
  static explain::Cause as_cause(std::string_view id) {
    explain::Cause out;
    out.id = id;
    out.finding.id = id;
    out.finding.variant = "text";
    // What explain works out for the GPU, driver, Python and platform of a text.
    const std::string install =
        "python -m pip install torch==VERSION+cuNNN "
        "--index-url https://download.pytorch.org/whl/cuNNN";
    out.finding.args = {
        {"install", install}, {"family", install}, {"reinstall", install}, {"restore", install}};
    return out;
  }
  std::string text(std::string_view id, std::string_view part, std::string_view lang) const {
    return escaped(cause_text(as_cause(id), part, lang, knowledge_));
  }

  void contents() {
    for (std::string_view layer : layers_) {
      std::string line;
      for (const FindingTexts* cause : causes_) {
        if (cause->category != layer) continue;
        const std::string id(cause->id);
        line += format("  - [`{}`](#{}) {} / {}\n", id, id, text(id, "title", "en"),
                       text(id, "title", "zh"));
      }
      if (!line.empty()) out_ += "\n- **" + layer_name(layer) + "**\n" + line;
    }
  }

  void cause(const FindingTexts& finding) {
    out_ += format("\n### `{}`\n", finding.id);
    const std::string messages = this->messages(finding);
    for (std::string_view lang : k_languages) {
      out_ += "\n**" + text(finding.id, "title", lang) + "**\n\n";
      item("messages", messages, lang);
      item("signs", combinations(finding, lang), lang);
      item("why", text(finding.id, "why", lang), lang);
      item("rule", text(finding.id, "rule", lang), lang);
      item("fix", text(finding.id, "next", lang), lang);
      item("decide", text(finding.id, "decide", lang), lang);
      item("against", clues(finding.against, lang, lang == "zh" ? "；" : "; "), lang);
      item("explains", links(finding.explains), lang);
    }
  }
  void item(const std::string& key, const std::string& text, std::string_view lang) {
    if (!text.empty()) out_ += "- " + say(key, lang) + (lang == "zh" ? "：" : ": ") + text + "\n";
  }

  static std::vector<const SignRow*> strongest_first(const FindingTexts& finding) {
    std::vector<const SignRow*> out;
    for (const SignRow& sign : finding.signs) out.push_back(&sign);
    std::stable_sort(out.begin(), out.end(), [](const SignRow* a, const SignRow* b) {
      return a->certain != b->certain ? a->certain : a->weight > b->weight;
    });
    return out;
  }

  std::string messages(const FindingTexts& finding) const {
    std::vector<std::string> out;
    std::set<std::string> known;
    for (const SignRow* sign : strongest_first(finding)) {
      if (sign->weight < k_telling && !out.empty()) break;
      size_t of_this = 0;
      for (uint32_t number : sign->any) {
        std::string text = pattern_text(knowledge_.text(knowledge_.patterns[number].re));
        if (text.size() < k_shortest || text.size() > k_longest || contains(text, "`")) continue;
        if (out.size() >= k_messages || of_this >= k_messages_of_a_sign) break;
        if (!known.insert(lower(text)).second) continue;
        out.push_back("`" + text + "`");
        ++of_this;
      }
    }
    return join(out, " · ");
  }

  std::string clues(std::span<const std::string_view> clues, std::string_view lang,
                    const std::string& between) const {
    std::vector<std::string> out;
    for (std::string_view clue : clues) {
      const bool absent = starts_with(clue, "!");
      std::string text = escaped(clue_text(absent ? clue.substr(1) : clue, lang, knowledge_));
      out.push_back(absent ? say("not", lang, {{"text", text}}) : text);
    }
    return join(out, between);
  }

  // Signs that need no message of their own.
  std::string combinations(const FindingTexts& finding, std::string_view lang) const {
    std::vector<std::string> out;
    for (const SignRow* sign : strongest_first(finding)) {
      if (!sign->any.empty() || out.size() >= k_combinations) continue;
      out.push_back(clues(sign->with, lang, " + "));
    }
    return join(out, " · ");
  }

  std::string links(std::span<const std::string_view> ids) const {
    std::vector<std::string> out;
    for (std::string_view id : ids) {
      const bool listed = std::any_of(causes_.begin(), causes_.end(),
                                      [&](const FindingTexts* one) { return one->id == id; });
      out.push_back(listed ? format("[`{}`](#{})", id, id) : format("`{}`", id));
    }
    return join(out, ", ");
  }

  const knowledge::Knowledge& knowledge_;
  std::vector<const FindingTexts*> causes_;
  std::vector<std::string_view> layers_;
  std::string out_;
};

}  // namespace

std::string causes_page(const knowledge::Knowledge& knowledge) {
  return CausesPage(knowledge).write();
}

}  // namespace cufit::report
