// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"
#include "report/explain.h"
#include "report/error_translation.h"
#include "report/keeper_commands.h"
#include "report/message.h"
#include "report/windows_commands.h"

namespace cufit::report {
namespace {

// {name}, as format_message() leaves it where nothing is known of the name. "{}" of a shell or JSON
// is none.
bool has_placeholder(std::string_view text) {
  for (size_t at = text.find('{'); at != text.npos; at = text.find('{', at + 1)) {
    size_t end = at + 1;
    while (end < text.size() && (text[end] == '_' || (text[end] >= 'a' && text[end] <= 'z') ||
                                 (text[end] >= '0' && text[end] <= '9')))
      ++end;
    if (end > at + 1 && end < text.size() && text[end] == '}') return true;
  }
  return false;
}

// After the end of the sentence that begins at `at`, its blanks included.
size_t sentence_end(std::string_view text, size_t at) {
  constexpr std::string_view k_full_stop = "\xE3\x80\x82";  // of Chinese
  bool quoted = false;
  for (size_t i = at; i < text.size(); ++i) {
    if (text[i] == '`') quoted = !quoted;
    if (quoted) continue;
    if (text[i] == '.' && i + 1 < text.size() && text[i + 1] == ' ') return i + 2;
    if (text.substr(i, k_full_stop.size()) == k_full_stop) return i + k_full_stop.size();
  }
  return text.size();
}

// Commands call the text's own Python wherever one stands in them: "`python -m pip", behind "&& ",
// "| xargs ", "$(" or a variable that is set. A command for a container keeps the container's.
std::string with_interpreter(std::string text, std::string_view interpreter) {
  constexpr std::string_view k_python = "python";
  constexpr std::string_view k_which = "\"$(which python)\"";
  for (size_t at = text.find(k_which); at != text.npos;
       at = text.find(k_which, at + interpreter.size()))
    text.replace(at, k_which.size(), interpreter);
  std::string out;
  // A check's step is the command itself, without marks.
  const bool bare = !contains(text, "`") && starts_with(text, "python -");
  bool code = false;
  for (const std::string_view part : split(text, '`')) {
    if (!out.empty() || code) out += '`';
    size_t from = 0;
    const bool inside = contains(part, "docker ") || contains(part, "podman ") ||
                        contains(part, "kubectl ") || contains(part, "ssh ");
    for (size_t at = (code || bare) && !inside ? part.find(k_python) : part.npos; at != part.npos;
         at = part.find(k_python, at + 1)) {
      const std::string_view behind = part.substr(at + k_python.size());
      const bool begins = at == 0 || part[at - 1] == ' ' || part[at - 1] == '(';
      if (!begins || !(starts_with(behind, " -m ") || starts_with(behind, " -c "))) continue;
      out += std::string(part.substr(from, at - from)) + std::string(interpreter);
      from = at + k_python.size();
    }
    out += part.substr(from);
    code = !code;
  }
  return out;
}

// What finds out whether it is this cause stands before its cure, where the text only hints at it.
std::string with_question(const explain::Cause& cause, std::string next, std::string_view lang,
                          const knowledge::Knowledge& knowledge) {
  using First = explain::Cause::First;
  if (cause.first == First::cure) return next;
  if (cause.first == First::decide) {
    std::string decide = finding_text(cause.finding, "decide", lang, knowledge);
    if (decide.empty() || has_placeholder(decide)) return next;
    const bool ends = ends_with(decide, ".") || ends_with(decide, "?") ||
                      ends_with(decide, "\xE3\x80\x82") || ends_with(decide, "\xEF\xBC\x9F");
    if (!ends) decide += lang == "zh" ? "\xE3\x80\x82" : ".";
    return message(knowledge, "explain.decide_first", lang, {{"decide", decide}, {"next", next}});
  }
  const auto program = cause.finding.args.find("PROGRAM.py");
  const bool named = program != cause.finding.args.end();
  return message(knowledge,
                 cause.for_windows ? "explain.measure_first_windows" : "explain.measure_first",
                 lang, {{"program", named ? program->second : "PROGRAM.py"}, {"next", next}});
}

}  // namespace

std::string cause_text(const explain::Cause& cause, std::string_view part, std::string_view lang,
                       const knowledge::Knowledge& knowledge) {
  const checks::Finding& said = part == "next" && cause.step ? *cause.step : cause.finding;
  std::string text = finding_text(said, part, lang, knowledge);
  if (part == "next") text = with_question(cause, std::move(text), lang, knowledge);
  if (part == "next" || part == "decide") text = for_keeper(text, cause.keeper, cause.tool);
  if (cause.for_windows && (part == "next" || part == "decide")) text = for_windows(text, lang);
  if (!cause.interpreter.empty() && (part == "next" || part == "decide"))
    text = with_interpreter(text, cause.interpreter);
  if (!has_placeholder(text)) return text;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = sentence_end(text, at);
    const std::string_view sentence = std::string_view(text).substr(at, end - at);
    if (!has_placeholder(sentence)) out += sentence;
    at = end;
  }
  return std::string(trim(out));
}

std::string clue_text(std::string_view clue, std::string_view lang,
                      const knowledge::Knowledge& knowledge) {
  for (const knowledge::ClueRow& row : knowledge.clues) {
    if (row.id == clue) return std::string(lang == "zh" ? row.zh : row.en);
  }
  return std::string(clue);
}

std::string fact_text(const std::string& fact, std::string_view lang,
                      const knowledge::Knowledge& knowledge) {
  return reworded(fact, "explain.fact.", lang, knowledge);
}

}  // namespace cufit::report
