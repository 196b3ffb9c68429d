// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/shell_words.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::commands {
namespace {

constexpr size_t k_most_script_bytes = 64u << 10;  // one word of a command holds no more than twice that

std::string_view program_name(std::string_view word) {
  word.remove_prefix(word.rfind('/') + 1);  // npos + 1 is 0
  return word;
}

bool is_shell(std::string_view word) {
  word = program_name(word);
  for (const std::string_view shell : {"sh", "bash", "dash", "zsh", "ksh"})
    if (word == shell) return true;
  return false;
}

// What takes all words behind it as its own, a shell's name among them (`python t.py --mode sh`).
// Other programs may start what follows: launchers have too many names to know each.
bool takes_the_rest(std::string_view word) {
  return starts_with(program_name(word), "python") || ends_with(word, ".py") ||
         ends_with(word, ".sh");
}

// "-eu": not the text itself, and none that takes the next word.
bool is_plain_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word.find_first_of("-cso", 1) == std::string::npos;
}

// The shell that a script's first line names, and its flags.
std::vector<std::string> first_line(const std::string& text) {
  std::vector<std::string> out;
  const std::string_view line = std::string_view(text).substr(0, text.find('\n'));
  if (!starts_with(line, "#!")) return out;
  for (const std::string_view word : split(trim(line.substr(2)), ' '))
    if (!word.empty() && (!out.empty() || is_shell(word))) out.emplace_back(word);
  return out;
}

// What names the script within itself: as a text it is $0 alone.
void name_by_zero(std::string& text) {
  for (const std::string_view name : {"${BASH_SOURCE[0]}", "${BASH_SOURCE}"})
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
      text.replace(at, name.size(), "$0");
}

}  // namespace

std::optional<size_t> shell_text(const std::vector<std::string>& command) {
  for (size_t i = 0; i < command.size(); ++i) {
    if (takes_the_rest(command[i])) return std::nullopt;
    if (!is_shell(command[i])) continue;
    for (size_t k = i + 1; k + 1 < command.size(); ++k) {
      const std::string& option = command[k];
      if (option.size() < 2 || option[0] != '-' || option[1] == '-') break;
      if (option.find('c') != std::string::npos) return k + 1;
      if (ends_with(option, "o")) ++k;  // -o pipefail
    }
    return std::nullopt;
  }
  return std::nullopt;
}

bool hands_words_on(const std::string& text) {
  for (const char* words : {"$@", "$*", "${@", "${*", "$1", "${1"})
    if (contains(text, words)) return true;
  return false;
}

std::optional<std::vector<std::string>> script_as_text(const host::Host& files,
                                                       const std::vector<std::string>& command) {
  size_t at = 0;
  while (at < command.size() && !is_shell(command[at]) && !takes_the_rest(command[at])) ++at;
  if (at == command.size()) return std::nullopt;
  const bool named = is_shell(command[at]);  // else the script's first line names it
  if (!named && (at > 0 || !ends_with(command[at], ".sh"))) return std::nullopt;
  size_t script = named ? at + 1 : at;
  while (script < command.size() && is_plain_flag(command[script])) ++script;
  if (script == command.size() || starts_with(command[script], "-")) return std::nullopt;
  Result<std::string> text = files.read_file(command[script], k_most_script_bytes);
  if (!text || text->find('\0') != std::string::npos) return std::nullopt;
  const auto word = [&](size_t i) { return command.begin() + static_cast<std::ptrdiff_t>(i); };
  std::vector<std::string> out(command.begin(), word(script));
  if (!named) out = first_line(*text);
  if (out.empty()) return std::nullopt;
  name_by_zero(*text);
  out.push_back("-c");
  out.push_back(std::move(*text));
  out.insert(out.end(), word(script), command.end());
  return out;
}

}  // namespace cufit::commands
