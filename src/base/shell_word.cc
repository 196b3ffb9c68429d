// SPDX-License-Identifier: Apache-2.0
#include "base/shell_word.h"

#include "base/format.h"

namespace cufit {

std::string shell_argument(std::string_view text) {
  constexpr std::string_view k_plain = "_-./,:=@%+";
  bool plain = !text.empty();
  for (const char c : text)
    plain = plain && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      static_cast<unsigned char>(c) >= 0x80 || contains(k_plain, {&c, 1}));
  if (plain) return std::string(text);
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '`')
      out += "'\"$(printf '\\140')\"'";
    else
      out += c;
  }
  return out + "'";
}

std::string shell_word(std::string_view text) {
  if (text == "-") return "-";  // standard input, for every command
  return starts_with(text, "-") ? shell_argument("./" + std::string(text)) : shell_argument(text);
}

}  // namespace cufit
