// SPDX-License-Identifier: Apache-2.0
#include "report/windows_commands.h"

#include "base/format.h"

namespace cufit::report {
namespace {

// python -c '...' becomes python -c "..." where nothing inside is quoted with the other kind.
std::string double_quoted(std::string code) {
  const std::string_view option = "-c '";
  for (size_t at = code.find(option); at != std::string::npos; at = code.find(option, at + 1)) {
    const size_t begin = at + option.size(), end = code.find('\'', begin);
    if (end == std::string::npos) break;
    if (code.substr(begin, end - begin).find('"') != std::string::npos) continue;
    code[begin - 1] = '"';
    code[end] = '"';
  }
  return code;
}

// One command after the other: `a && b` becomes `a`, then `b`.
std::string apart(std::string_view code, std::string_view lang) {
  const std::string_view joint = lang == "zh" ? "`，然后 `" : "`, then `";
  std::string out;
  for (size_t at = code.find(" && "); at != code.npos; at = code.find(" && ")) {
    out += std::string(code.substr(0, at)) + std::string(joint);
    code.remove_prefix(at + 4);
  }
  return out + std::string(code);
}

}  // namespace

std::string for_windows(std::string_view text, std::string_view lang) {
  std::string out;
  const std::vector<std::string_view> parts = split(text, '`');
  if (parts.size() % 2 == 0) return std::string(text);  // a backtick of the text's own
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool code = i % 2 == 1;
    out += code ? "`" + apart(double_quoted(std::string(parts[i])), lang) + "`"
                : std::string(parts[i]);
  }
  return out;
}

}  // namespace cufit::report
