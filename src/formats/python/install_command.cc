// SPDX-License-Identifier: Apache-2.0
#include "formats/python/install_command.h"

#include <algorithm>

#include "base/format.h"
#include "formats/python/requirement.h"
#include "formats/prose/text_words.h"

namespace cufit::formats {
namespace {

constexpr std::string_view k_installs[] = {"pip install ", "pip3 install ", "uv add ",
                                           "poetry add ", "pdm add "};
// Options whose value is the next word.
constexpr std::string_view k_with_value[] = {"-r",
                                             "--requirement",
                                             "-c",
                                             "--constraint",
                                             "-i",
                                             "--index-url",
                                             "-f",
                                             "--find-links",
                                             "-t",
                                             "--target",
                                             "--python",
                                             "--prefix",
                                             "--extra-index-url",
                                             "--trusted-host",
                                             "--no-binary",
                                             "--only-binary",
                                             "--timeout",
                                             "--retries",
                                             "--root",
                                             "--index",
                                             "--group",
                                             "-p",
                                             "--progress-bar",
                                             "--config-settings",
                                             "--global-option",
                                             "--build-option",
                                             "--cache-dir",
                                             "--platform"};

bool is_path(std::string_view word) {
  return word[0] == '.' || word[0] == '/' || word[0] == '~' || word.find('/') != word.npos ||
         word.find('\\') != word.npos;
}

// Where a shell ends the command, or prose the quotation.
std::string_view command_part(std::string_view text) {
  size_t end = 0;
  char quote = 0;
  for (; end < text.size(); ++end) {
    const char c = text[end];
    if (quote) {
      if (c == quote) quote = 0;
      continue;
    }
    if ((c == '"' || c == '\'') && end > 0 && text[end - 1] == ' ') {
      quote = c;
    } else if (c == ';' || c == '|' || c == '&' || c == '`' || c == ')' || c == '#' || c == '"' ||
               c == '\'' || (c == '>' && end > 0 && text[end - 1] == ' ')) {
      // "x #subdirectory" is a comment, "x#subdirectory" a part of an address
      if (c != '#' || (end > 0 && text[end - 1] == ' ')) break;
    }
  }
  return text.substr(0, end);
}

// What stands before the command is a prompt, a Dockerfile's RUN, another command or a backtick;
// "python -m" is no prose either.
bool is_typed(std::string_view before) {
  before = trim(before);
  if (ends_with(before, "-m")) return true;
  if (ends_with(before, "uv")) before = trim(before.substr(0, before.size() - 2));
  if (ends_with(before, "sudo")) before = trim(before.substr(0, before.size() - 4));
  if (before.empty()) return false;
  return std::string_view("$#>%!&;`").find(before.back()) != std::string_view::npos ||
         ends_with(before, "RUN");
}

std::string_view without_quotes(std::string_view word) {
  const size_t begin = word.find_first_not_of("'\"");
  if (begin == word.npos) return {};
  return word.substr(begin, word.find_last_not_of("'\",") - begin + 1);
}

// True when the requirement names an address: "x@git+https://...".
bool want(std::string_view word, uint64_t number, InstallCommand& command) {
  size_t end = 0;
  while (end < word.size() && (is_name_char(word[end]) || word[end] == '-' || word[end] == '.'))
    ++end;
  const std::string_view name = word.substr(0, end);
  std::string_view rest = word.substr(end);
  if (!is_distribution_name(name)) return false;
  if (starts_with(rest, "[") && rest.find(']') != rest.npos) rest = rest.substr(rest.find(']') + 1);
  PackageMention mention;
  mention.name = name;
  mention.line = number;
  if (starts_with(rest, "==")) mention.version = pinned_version(rest.substr(2));
  command.wanted.push_back(std::move(mention));
  return rest.find('@') != rest.npos;
}

InstallCommand parse_one(std::string_view text, uint64_t number, bool& from_folder) {
  InstallCommand command;
  command.line = number;
  bool value = false, editable = false;
  for (std::string_view raw : words_of(command_part(text), 64)) {
    const std::string_view word = without_quotes(raw);
    if (word.empty() || word == "\\") continue;
    if (value) {
      value = false;
      continue;
    }
    if (editable || (word[0] != '-' && is_path(word))) {
      editable = false;
      if (word.find(".whl") == word.npos) from_folder = true;
      continue;
    }
    if (word[0] == '-') {
      editable = word == "-e" || word == "--editable";
      value = std::find(std::begin(k_with_value), std::end(k_with_value), word) !=
              std::end(k_with_value);
      continue;
    }
    if (command.wanted.size() < 16 && want(word, number, command)) from_folder = true;
  }
  return command;
}

}  // namespace

std::string_view pinned_version(std::string_view text) {
  const std::string_view version = python_version_at(text);
  const std::string_view rest = text.substr(version.size());
  if (starts_with(rest, "*") || starts_with(rest, ".*")) return {};
  if (version.find_first_of("+!*") != version.npos || !parse_python_version(version)) return {};
  return version;
}

std::vector<InstallCommand> parse_install_commands(std::string_view line, uint64_t number,
                                                   bool& from_folder) {
  std::vector<InstallCommand> out;
  for (std::string_view install : k_installs) {
    for (size_t at = line.find(install); at != line.npos && out.size() < 8;
         at = line.find(install, at + 1)) {
      if (at > 0 && (is_name_char(line[at - 1]) || line[at - 1] == '-')) continue;
      InstallCommand command = parse_one(line.substr(at + install.size()), number, from_folder);
      const std::string_view before = trim(line.substr(0, at));
      // At the start of a line it may be prose: "pip install fails".
      const bool exact = command.wanted.size() == 1 && !command.wanted[0].version.empty();
      command.typed = is_typed(before) ||
                      ((before.empty() || before == "uv") && (exact || contains(line, " --")));
      out.push_back(std::move(command));
    }
  }
  return out;
}

}  // namespace cufit::formats
