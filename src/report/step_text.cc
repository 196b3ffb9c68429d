// SPDX-License-Identifier: Apache-2.0
#include "report/step_text.h"

#include <algorithm>

#include "base/shell_word.h"
#include "report/message.h"

namespace cufit::report {
namespace {

// Made by checks as commands, whose words are quoted there.
constexpr std::string_view k_ready[] = {"at",        "command",   "family",      "install",
                                        "install_a", "install_b", "patched",     "pip_install",
                                        "reinstall", "restore",   "wanted_words"};

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

std::string in_double_quotes(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '`') {
      out += "$(printf '\\140')";
      continue;
    }
    if (c == '"' || c == '$' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// shell_word() of a value that goes on a word: it cannot be an option there.
std::string within_word(const std::string& value) {
  if (value.empty() || value[0] != '-') return value.empty() ? value : shell_word(value);
  const std::string quoted = shell_word(value);
  if (quoted == "-") return quoted;
  return quoted[0] == '\'' ? "'" + quoted.substr(3) : quoted.substr(2);  // without its "./"
}

// Where in a command the text has come to.
class Place {
 public:
  explicit Place(bool whole) : whole_(whole), command_(whole) {}

  void read(std::string_view literal) {
    for (const char c : literal) {
      const bool escaped = before_ == '\\' && quote_ != '\'';
      before_ = escaped ? 'x' : c;
      if (c == '`' && !whole_) {
        command_ = !command_;
        quote_ = 0;
        before_ = ' ';
      } else if (command_ && !escaped && (c == '\'' || c == '"') && (quote_ == 0 || quote_ == c)) {
        quote_ = quote_ == 0 ? c : 0;
      }
    }
  }

  std::string filled(std::string_view name, const std::string& value) const {
    const bool ready = std::find(std::begin(k_ready), std::end(k_ready), name) != std::end(k_ready);
    if (!command_) return replaced(value, "`", "'");
    if (ready) return replaced(value, "`", "'\"$(printf '\\140')\"'");  // it is quoted there
    if (quote_ == '"') return in_double_quotes(value);
    if (quote_ == '\'')
      return replaced(replaced(value, "'", "'\\''"), "`", "'\"$(printf '\\140')\"'");
    return before_ == ' ' ? shell_word(value) : within_word(value);
  }

 private:
  const bool whole_;
  bool command_;
  char quote_ = 0, before_ = ' ';
};

}  // namespace

std::string fill_step(std::string_view text, const std::map<std::string, std::string>& args,
                      bool whole) {
  Place place(whole);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t open = std::min(text.find('{', at), text.size());
    place.read(text.substr(at, open - at));
    out += format_message(text.substr(at, open - at), {});
    const size_t close = text.find('}', open);
    const bool doubled = text.substr(open, 2) == "{{";
    const std::string name(close == text.npos || doubled ? std::string_view()
                                                         : text.substr(open + 1, close - open - 1));
    const auto found = args.find(name);
    if (open == text.size()) break;
    if (name.empty() || found == args.end()) {
      out += '{';
      at = open + (doubled ? 2 : 1);
      continue;
    }
    out += place.filled(name, found->second);
    place.read("x");
    at = close + 1;
  }
  return out;
}

}  // namespace cufit::report
