// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

namespace cufit::report {
namespace {

bool name_character(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

// The text of a key in the language, in English where a translation is missing, or nothing.
const knowledge::TextPair* find_text(const knowledge::FindingTexts& texts, std::string_view key) {
  for (const knowledge::TextPair& pair : texts.texts)
    if (pair.key == key) return &pair;
  return nullptr;
}

}  // namespace

std::string fill(std::string_view text, const std::map<std::string, std::string>& args) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if ((c == '{' || c == '}') && i + 1 < text.size() &&
        text[i + 1] == c) {  // {{ and }} are literal braces
      out += c;
      ++i;
      continue;
    }
    if (c == '{') {
      size_t end = i + 1;
      while (end < text.size() && name_character(text[end])) ++end;
      if (end > i + 1 && end < text.size() && text[end] == '}') {
        auto found = args.find(std::string(text.substr(i + 1, end - i - 1)));
        if (found != args.end()) {
          out += found->second;
          i = end;
          continue;
        }
      }
    }
    out += c;
  }
  return out;
}

namespace {

// A finding that could not be decided asserts nothing: its title is quoted, and its ordinary reason
// and step, which speak of facts that are missing, give way. Variants "unknown_..." are written for
// the case.
std::string undecided_text(const checks::Finding& finding, std::string_view part,
                           const std::string& text, std::string_view lang,
                           const knowledge::Knowledge& knowledge) {
  if (part == "title")
    return fill(knowledge.message("report.undecided.title", lang), {{"title", text}});
  const bool own = finding.variant.rfind("unknown_", 0) == 0;
  if (own || (part != "why" && part != "next")) return text;
  return std::string(knowledge.message("report.undecided." + std::string(part), lang));
}

}  // namespace

std::string finding_text(const checks::Finding& finding, std::string_view part,
                         std::string_view lang, const knowledge::Knowledge& knowledge) {
  const knowledge::FindingTexts* texts = knowledge.find_texts(finding.id);
  const knowledge::TextPair* pair = nullptr;
  if (texts) {
    if (!finding.variant.empty())
      pair = find_text(*texts, std::string(part) + "." + finding.variant);
    // "text.mkl": what else is known of a pasted text serves it too.
    const size_t dot = finding.variant.find('.');
    if (!pair && dot != std::string::npos)
      pair = find_text(*texts, std::string(part) + "." + finding.variant.substr(0, dot));
    if (!pair) pair = find_text(*texts, part);
  }
  if (!pair)
    return part == "title" ? finding.id : std::string();  // an id is better than an empty headline
  std::string_view text = lang == "zh" && !pair->zh.empty() ? pair->zh : pair->en;
  std::string filled = fill(text, finding.args);
  if (finding.severity != checks::Severity::unknown) return filled;
  return undecided_text(finding, part, filled, lang, knowledge);
}

}  // namespace cufit::report
