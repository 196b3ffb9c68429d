// SPDX-License-Identifier: Apache-2.0
#include "report/export/export_template.h"

#include <algorithm>

#include "base/format.h"
#include "base/result.h"
#include "report/report.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr int k_comment_width = 98;

// The scopes around a line, innermost last.
using Scopes = std::vector<const Scope*>;

const std::string* find_value(const Scopes& scopes, const std::string& name) {
  for (size_t i = scopes.size(); i-- > 0;)
    if (auto found = scopes[i]->values.find(name); found != scopes[i]->values.end())
      return &found->second;
  return nullptr;
}

const std::vector<Scope>* find_list(const Scopes& scopes, const std::string& name) {
  for (size_t i = scopes.size(); i-- > 0;)
    if (auto found = scopes[i]->lists.find(name); found != scopes[i]->lists.end())
      return &found->second;
  return nullptr;
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

std::string fill_line(std::string_view line, const Scopes& scopes) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    size_t end = i + 1;
    while (line[i] == '@' && end < line.size() && is_name_character(line[end])) ++end;
    if (line[i] != '@' || end == i + 1 || end >= line.size() || line[end] != '@') {
      out += line[i];
      continue;
    }
    const std::string* value = find_value(scopes, std::string(line.substr(i + 1, end - i - 1)));
    CUFIT_CHECK(value != nullptr, "a template names a value that does not exist");
    out += *value;
    i = end;
  }
  return out;
}

// A comment ends with its line: what comes from a lock must not begin another one.
std::string comment_text(std::string_view text) {
  // At NEL, U+2028 and U+2029 YAML 1.1 ends a line, too: printable() escapes them.
  std::string out = printable(text);
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

struct Filler {
  std::string_view lang;
  const knowledge::Knowledge& knowledge;
  std::vector<std::string_view> lines;
  std::string out;

  void note(std::string_view indent, const std::string& key, const Scopes& scopes) {
    const std::string_view text = knowledge.message("export." + key, lang);
    CUFIT_CHECK(!text.empty(), "a template names a message that does not exist");
    std::map<std::string, std::string> args;
    for (const Scope* scope : scopes)
      for (const auto& [name, value] : scope->values) args[name] = comment_text(value);
    const int width = k_comment_width - static_cast<int>(indent.size());
    for (const std::string& line : wrap(report::format_message(text, args), width))
      out += std::string(indent) + "# " + line + "\n";
  }

  // The line after the @end that belongs to the block opened at `first`.
  size_t end_of(size_t first) const {
    size_t depth = 0;
    for (size_t i = first; i < lines.size(); ++i) {
      const std::string_view line = trim(lines[i]);
      if (starts_with(line, "@each ") || starts_with(line, "@if ")) ++depth;
      if (line == "@end" && --depth == 0) return i;
    }
    CUFIT_CHECK(false, "a template's block is not closed");
    return lines.size();
  }

  void range(size_t begin, size_t end, const Scopes& scopes) {
    for (size_t i = begin; i < end; ++i) {
      const std::string_view line = trim(lines[i]);
      const std::string_view indent =
          lines[i].substr(0, lines[i].find_first_not_of(' ') == std::string_view::npos
                                 ? 0
                                 : lines[i].find_first_not_of(' '));
      if (starts_with(line, "@note ")) {
        note(indent, std::string(line.substr(6)), scopes);
      } else if (starts_with(line, "@if ")) {
        const size_t close = end_of(i);
        const std::string name(line.substr(4));
        const std::string* value = find_value(scopes, name);
        const std::vector<Scope>* list = find_list(scopes, name);
        if ((value != nullptr && !value->empty()) || (list != nullptr && !list->empty()))
          range(i + 1, close, scopes);
        i = close;
      } else if (starts_with(line, "@each ")) {
        const size_t close = end_of(i);
        const std::vector<Scope>* list = find_list(scopes, std::string(line.substr(6)));
        CUFIT_CHECK(list != nullptr, "a template names a list that does not exist");
        for (const Scope& row : *list) {
          Scopes inner = scopes;
          inner.push_back(&row);
          range(i + 1, close, inner);
        }
        i = close;
      } else {
        out += fill_line(lines[i], scopes) + "\n";
      }
    }
  }
};

}  // namespace

std::string fill_template(std::string_view text, const Scope& scope, std::string_view lang,
                          const knowledge::Knowledge& knowledge) {
  Filler filler{lang, knowledge, split_lines(text), {}};
  while (!filler.lines.empty() && filler.lines.back().empty()) filler.lines.pop_back();
  filler.range(0, filler.lines.size(), {&scope});
  return filler.out;
}

}  // namespace cufit::report
