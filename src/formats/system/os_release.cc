// SPDX-License-Identifier: Apache-2.0
#include "formats/system/os_release.h"

#include "base/format.h"
#include "formats/prose/printable.h"

namespace cufit::formats {
namespace {

// Quotes as a shell reads them: nothing is special in '...', a backslash keeps the next character
// in "...".
std::string unquote(std::string_view text) {
  std::string out;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      out += text[++i];
    } else {
      out += c;
    }
  }
  return printable(out);
}

}  // namespace

OsRelease parse_os_release(std::string_view text) {
  OsRelease out;
  for (std::string_view line : split_lines(text)) {
    line = trim(line);
    size_t equals = line.find('=');
    if (line.empty() || line[0] == '#' || equals == std::string_view::npos) continue;
    std::string_view name = line.substr(0, equals);
    std::string_view value = line.substr(equals + 1);
    if (name == "ID") out.id = unquote(value);
    if (name == "VERSION_ID") out.version_id = unquote(value);
    if (name == "PRETTY_NAME") out.pretty_name = unquote(value);
  }
  return out;
}

}  // namespace cufit::formats
