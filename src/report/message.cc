// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/format.h"
#include "formats/prose/printable.h"
#include "knowledge/finding_text.h"
#include "report/report.h"
#include "report/error_translation.h"
#include "report/step_text.h"

namespace cufit::report {
namespace {

bool name_character(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

// Commands, quotations and addresses keep the signs that they have.
bool is_verbatim(std::string_view value) {
  for (const char* sign : {"`", " -", "&&", "://", "\n", "=\""})
    if (contains(value, sign)) return true;
  return false;
}

}  // namespace

std::string chinese_signs(std::string_view value) {
  if (is_verbatim(value)) return std::string(value);
  std::string out;
  std::vector<bool> wide;  // of each open bracket
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string_view two = value.substr(i, 2);
    if (two == ", " || two == "; ") {
      out += two == "; " ? "；" : wide.empty() ? "、" : "，";
      ++i;
    } else if (two == " (") {
      out += "（";
      wide.push_back(true);
      ++i;
    } else if (value[i] == '(') {
      out += '(';
      wide.push_back(false);
    } else if (value[i] == ')' && !wide.empty()) {
      out += wide.back() ? "）" : ")";
      wide.pop_back();
      if (ends_with(out, "）") && value.substr(i + 1, 1) == " ") ++i;
    } else {
      out += value[i];
    }
  }
  return wide.empty() ? out : std::string(value);
}

std::string format_message(std::string_view text, const std::map<std::string, std::string>& args,
                           std::string_view lang) {
  std::string out;
  out.reserve(text.size());
  bool in_code = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '`') in_code = !in_code;
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
          const bool quoted = in_code || ends_with(out, "“");
          out += lang == "zh" && !quoted ? chinese_signs(found->second) : found->second;
          i = end;
          if (ends_with(out, "）") && i + 1 < text.size() && text[i + 1] == ' ') ++i;
          continue;
        }
      }
    }
    out += c;
  }
  return out;
}

std::string subject_text(const std::string& subject, std::string_view lang,
                         const knowledge::Knowledge& knowledge) {
  if (subject.empty() || subject == "machine") return {};
  if (subject == "env (claimed)") return label(knowledge, lang, "subject.claimed");
  if (starts_with(subject, "env "))
    return label(knowledge, lang, "subject.env", {{"path", formats::printable(subject.substr(4))}});
  if (subject == "container") return label(knowledge, lang, "subject.container");
  return formats::printable(subject);
}

std::string message(const knowledge::Knowledge& knowledge, std::string_view key,
                    std::string_view lang, const std::map<std::string, std::string>& args) {
  return format_message(knowledge.message(key, lang), args);
}

std::string label(const knowledge::Knowledge& knowledge, std::string_view lang,
                  std::string_view key, const std::map<std::string, std::string>& args) {
  std::string full = "report." + std::string(key);
  std::string_view text = knowledge.message(full, lang);
  return text.empty() ? full : format_message(text, args);
}

namespace {

// A finding that could not be decided asserts nothing: its title is quoted, and its ordinary reason
// and step, which speak of facts that are missing, give way. Variants "unknown_..." are written for
// the case.
std::string undecided_text(const checks::Finding& finding, std::string_view part,
                           const std::string& text, std::string_view lang,
                           const knowledge::Knowledge& knowledge) {
  if (part == "title") return message(knowledge, "report.undecided.title", lang, {{"title", text}});
  const bool own = finding.variant.rfind("unknown_", 0) == 0;
  if (own || (part != "why" && part != "next")) return text;
  return message(knowledge, "report.undecided." + std::string(part), lang);
}

}  // namespace

namespace {

bool part_of_word(std::string_view text, size_t at) {
  return at < text.size() && (name_character(text[at]) || (text[at] >= 'A' && text[at] <= 'Z'));
}

// What a text says for a name that no table can know: PACKAGE is a distribution, MODULE what is
// imported, PROGRAM.py the script that was started. They are replaced where the finding has an argument of that name. What is to be
// installed is a requirement ("flash-attn==2.5.8"); an option's value and what is uninstalled is a
// name alone, and what is upgraded has no version.
std::string fill_stand_ins(std::string text, const std::map<std::string, std::string>& args) {
  for (const char* stand_in : {"PACKAGE", "MODULE", "PROGRAM.py"}) {
    const std::string_view word = stand_in;
    const auto name = args.find(stand_in);
    if (name == args.end()) continue;
    const auto wanted = args.find(word == "PACKAGE" ? "REQUIREMENT" : stand_in);
    for (size_t at = text.find(word); at != text.npos; at = text.find(word, at)) {
      const bool whole = !part_of_word(text, at - 1) && !part_of_word(text, at + word.size());
      if (!whole) {
        at += word.size();
        continue;
      }
      const std::string_view before = std::string_view(text).substr(0, at);
      const bool alone = wanted == args.end() || ends_with(before, "--no-binary ") ||
                         ends_with(before, "uninstall -y ");
      std::string value = alone ? name->second : wanted->second;
      if (ends_with(before, "--upgrade ")) value.resize(std::min(value.find("=="), value.size()));
      text.replace(at, word.size(), value);
      at += value.size();
    }
  }
  return text;
}

}  // namespace

std::map<std::string, std::string> link_args(const checks::Link& link, std::string_view lang,
                                             const knowledge::Knowledge& knowledge) {
  std::map<std::string, std::string> args = link.args;
  const auto id = args.find("id");
  if (id == args.end()) return args;
  checks::Finding named;
  named.id = id->second;
  named.args = link.args;
  args["title"] = finding_text(named, "title", lang, knowledge);
  return args;
}

std::string finding_text(const checks::Finding& finding, std::string_view part,
                         std::string_view lang, const knowledge::Knowledge& knowledge) {
  if (part == "next" && finding.step_fails) return message(knowledge, "report.step_fails", lang);
  const knowledge::FindingTexts* texts = knowledge.find_texts(finding.id);
  const knowledge::TextPair* pair = nullptr;
  if (texts) {
    if (!finding.variant.empty())
      pair = knowledge::find_text(*texts, std::string(part) + "." + finding.variant);
    // "text.mkl": what else is known of a pasted text serves it too. "cpu.driver_too" is both: the
    // step of the second half goes with the reason of the first.
    const size_t dot = finding.variant.find('.');
    if (!pair && dot != std::string::npos && finding.variant.compare(0, dot, "text") != 0)
      pair = knowledge::find_text(*texts, std::string(part) + finding.variant.substr(dot));
    if (!pair && dot != std::string::npos)
      pair = knowledge::find_text(*texts, std::string(part) + "." + finding.variant.substr(0, dot));
    if (!pair) pair = knowledge::find_text(*texts, part);
  }
  if (!pair)
    return part == "title" ? finding.id : std::string();  // an id is better than an empty headline
  std::string_view text = lang == "zh" && !pair->zh.empty() ? pair->zh : pair->en;
  std::map<std::string, std::string> args = finding.args;
  if (lang == "zh") {
    for (auto& [name, value] : args) {
      if (name == "meaning" && !knowledge.meaning_zh(value).empty())
        value = std::string(knowledge.meaning_zh(value));
      if (name == "what" || name == "note") value = translated_error(value, lang, knowledge);
      if (name == "why")
        value =
            translated_error(reworded(value, "resolve.reason.", lang, knowledge), lang, knowledge);
    }
  }
  // A step that reads the same in every language is a command as a whole.
  const bool whole = pair->en == pair->zh && !contains(text, "`");
  std::string filled =
      part == "next" ? fill_step(text, args, whole) : format_message(text, args, lang);
  filled = fill_stand_ins(std::move(filled), finding.args);
  if (finding.severity != checks::Severity::unknown) return filled;
  return undecided_text(finding, part, filled, lang, knowledge);
}

std::string tables_line(std::string_view lang, const knowledge::Knowledge& knowledge) {
  return label(knowledge, lang, knowledge.updated ? "tables_updated" : "tables",
               {{"date", std::string(knowledge.date)}});
}

}  // namespace cufit::report
