// SPDX-License-Identifier: Apache-2.0
#include "base/shell_word.h"

#include <algorithm>

#include "base/format.h"
#include "base/terminal_marks.h"
#include "base/utf8.h"

namespace cufit {

namespace {

bool is_plain(char c) {
  constexpr std::string_view k_plain = "_-./,:=@%+";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         contains(k_plain, {&c, 1});
}

// What a printer would change or a report would take for its own. A newline stays: what a shell puts in place of $(...) has
// none at its end.
bool is_altered(std::string_view sequence) {
  const uint32_t code = utf8_code(sequence);
  return (code < 0x20 && code != '\n') || code == '`' || is_late_control(code) ||
         is_direction_mark(code);
}

}  // namespace

std::string shell_argument(std::string_view text) {
  std::string out = "'", numbers;
  bool plain = !text.empty();
  const auto close_numbers = [&] {
    if (!numbers.empty()) out += "'\"$(printf '" + numbers + "')\"'";
    numbers.clear();
  };
  for (size_t length = 0; !text.empty(); text.remove_prefix(length)) {
    const size_t well_formed = utf8_length(text);
    length = std::max<size_t>(well_formed, 1);
    const std::string_view sequence = text.substr(0, length);
    if (well_formed == 0 || is_altered(sequence)) {
      for (const char c : sequence)
        numbers += format("\\{:03o}", static_cast<unsigned>(static_cast<unsigned char>(c)));
      plain = false;
      continue;
    }
    close_numbers();
    if (length == 1) plain = plain && is_plain(text[0]);
    if (text[0] == '\'')
      out += "'\\''";
    else
      out += sequence;
  }
  close_numbers();
  return plain ? out.substr(1) : out + "'";
}

std::string shell_word(std::string_view text) {
  if (text == "-") return "-";  // standard input, for every command
  return starts_with(text, "-") ? shell_argument("./" + std::string(text)) : shell_argument(text);
}

}  // namespace cufit
