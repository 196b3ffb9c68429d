// SPDX-License-Identifier: Apache-2.0
#include "explain/provenance.h"

#include <algorithm>

#include "base/format.h"
#include "formats/prose/text_words.h"

namespace cufit::explain {
namespace {

bool begins_with_one_of(std::string_view text, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view start) { return starts_with(text, start); });
}

// A whole line that is a comment or a quotation. ">>> " is Python's prompt, "#error" a line that
// compilers print, "#15 " begins a line of Docker's builder.
bool is_marked_line(std::string_view line) {
  if (starts_with(line, "# error")) return false;
  return begins_with_one_of(line,
                            {"> ", ">> ", "# ", "## ", "### ", "// ", "/* ", "<!--", "REM ", "::"});
}

// "pip install x  # else nvcc says ..."; "root@host:/# dmesg" and "[~]# dmesg" are prompts.
bool is_after_comment_sign(std::string_view line, size_t column) {
  for (std::string_view sign : {" # ", " // "}) {
    const size_t at = line.find(sign);
    if (at != line.npos && at < column && !starts_with(line.substr(at), " # error")) return true;
  }
  return false;
}

// `msg="..."`, `"message": "..."`: a value of a structured line, not a quotation.
bool is_value(std::string_view before) {
  if (before.empty()) return false;
  if (before.back() == '=') return true;
  const std::string_view name = trim(before);
  return ends_with(name, "\":") || ends_with(name, "{") || ends_with(name, "[");
}

bool is_within_marks(std::string_view line, size_t column, std::string_view opening,
                     std::string_view closing) {
  for (size_t at = line.find(opening); at != line.npos && at <= column;) {
    const size_t begin = at + opening.size(), end = line.find(closing, begin);
    if (end == line.npos) return false;
    const std::string_view before = line.substr(0, at);
    if (column < end && column >= at) return !is_value(before);
    at = line.find(opening, end + closing.size());
  }
  return false;
}

// `code` of Markdown. GNU programs open a quotation with a backtick and close it with an
// apostrophe: "version `GLIBC_2.34' not found (required by `libx.so')".
bool is_within_backticks(std::string_view line, size_t column) {
  for (size_t at = line.find('`'); at != line.npos && at <= column;) {
    const size_t apostrophe = line.find('\'', at), end = line.find('`', at + 1);
    if (end == line.npos) return false;
    const bool gnu = apostrophe < end && line.substr(at, apostrophe - at).find(' ') == line.npos;
    if (!gnu && column < end) return true;
    at = gnu ? end : line.find('`', end + 1);
  }
  return false;
}

// "**Q: ...", "- when I ...", "| error | fix |", "Q: ..."
bool is_markdown(std::string_view line) {
  return begins_with_one_of(line, {"**", "- ", "* ", "• ", "| ", "Q:", "Q.", "A:"});
}

// "I get", "I think": the letter alone is a log level as well ("I 10:00:00 ...", "I0610 ...").
bool speaks_of_oneself(std::string_view text) {
  for (size_t at = text.find("I "); at != text.npos; at = text.find("I ", at + 1)) {
    const bool whole = at == 0 || !formats::is_name_char(text[at - 1]);
    const char next = at + 2 < text.size() ? text[at + 2] : ' ';
    if (whole && next >= 'a' && next <= 'z') return true;
  }
  return contains(text, "I'm ") || contains(text, "I'd ") || contains(text, "I've ");
}

// Words before a message that say who brings it, or when it was.
bool is_told(std::string_view before) {
  constexpr std::string_view k_words[] = {
      "my",  "me",      "we",       "our",   "he",      "she",     "they",      "someone",
      "got", "getting", "gives",    "gave",  "says",    "comment", "yesterday", "previously",
      "ago", "solved",  "resolved", "reads", "attempt", "faq",     "earlier"};
  for (std::string_view word : k_words) {
    if (formats::has_word(before, word)) return true;
  }
  for (std::string_view word :
       {"last month", "last week", "last year", "used to", "the error was"}) {
    if (formats::find_word(before, word) != before.npos) return true;
  }
  for (std::string_view word : {"之前", "以前", "上次", "上周", "上个月", "曾经", "我"}) {
    if (contains(before, word)) return true;
  }
  return speaks_of_oneself(before);
}

}  // namespace

bool is_quoted(std::string_view line, size_t column) {
  const std::string_view text = trim(line);
  if (is_marked_line(text) || is_after_comment_sign(line, column)) return true;
  return is_within_backticks(line, column) || is_within_marks(line, column, "\"", "\"") ||
         is_within_marks(line, column, "“", "”") || is_within_marks(line, column, "「", "」");
}

bool is_program_output(std::string_view line, size_t column) {
  if (is_quoted(line, column) || is_markdown(trim(line))) return false;
  return !is_told(line.substr(0, std::min(column, line.size())));
}

}  // namespace cufit::explain
