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

// The sed that makes an index of uv explicit, whose program Windows has not: what it writes.
std::string written_by_hand(std::string_view sed, std::string_view lang) {
  const size_t begin = sed.find('"'), end = sed.find('"', begin + 1);
  const std::string name(sed.substr(begin, end + 1 - begin));
  return lang == "zh" ? "在 pyproject.toml 的 `name = " + name + "` 下面加一行 `explicit = true"
                      : "write `explicit = true` below `name = " + name + "` in pyproject.toml";
}

// One command after the other: `a && b` becomes `a`, then `b`.
std::string apart(std::string_view code, std::string_view lang) {
  const bool zh = lang == "zh";
  const std::string_view joint = zh ? "`，然后 `" : "`, then `";
  std::string out;
  for (size_t at = code.find(" && "); at != code.npos; at = code.find(" && ")) {
    const std::string_view first = code.substr(0, at);
    code.remove_prefix(at + 4);
    out += std::string(first);
    if (starts_with(code, "sed -i '/^name *= *\"")) {
      const size_t next = code.find(" && ");
      if (next == code.npos) break;
      const std::string by_hand = written_by_hand(code.substr(0, next), lang);
      out += std::string(zh ? "`，再" : "`, then ") + by_hand +
             std::string(zh ? "`，然后 `" : ", then `");
      code.remove_prefix(next + 4);
      continue;
    }
    out += std::string(joint);
  }
  return out + std::string(code);
}

}  // namespace

std::string for_windows(std::string_view text, std::string_view lang) {
  std::string out, quoted;
  const bool chain = starts_with(text, "uv add --frozen ") || starts_with(text, "conda remove ");
  if (chain && !contains(text, "`"))
    text = quoted = "`" + std::string(text) + "`";
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
