// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/batch_argument.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "commands/fit/shell_words.h"

namespace cufit::commands {
namespace {

constexpr std::string_view k_blank = " \t", k_ends = " \t\n;&|()<>'\"", k_continued = "\\\n";

// Behind blanks and lines that a backslash continues. The end of a line itself ends a command.
size_t behind_blanks(const std::string& text, size_t at) {
  for (;;) {
    at = std::min(text.find_first_not_of(k_blank, at), text.size());
    if (text.compare(at, k_continued.size(), k_continued) != 0) return at;
    at += k_continued.size();
  }
}

// Behind what a shell puts in place of it: "$(nproc)", "$((2 * 4))" and "`nproc`" hold blanks and
// brackets of their own. The same place where none begins there.
size_t behind_substitution(std::string_view text, size_t at) {
  if (text[at] == '`') {
    const size_t end = text.find('`', at + 1);
    return end == std::string_view::npos ? text.size() : end + 1;
  }
  if (text.substr(at, 2) != "$(") return at;
  size_t open = 0;
  for (size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '(') ++open;
    if (text[i] == ')' && --open == 0) return i + 1;
  }
  return text.size();
}

// Where a word of a shell's text ends, whose value begins at `at`: at a blank or at what ends a
// command.
size_t end_of_word(std::string_view text, size_t at) {
  // A continued line goes on with blanks, so that the value ends there, too.
  const auto ends = [&] {
    return k_ends.find(text[at]) != std::string_view::npos ||
           text.substr(at, k_continued.size()) == k_continued;
  };
  while (at < text.size() && !ends()) {
    const size_t behind = behind_substitution(text, at);
    at = behind == at ? at + 1 : behind;
  }
  return at;
}

// The same for the words of a shell's text.
template <typename Found>
void each_in_text(std::string& text, const std::string& name, const Found& found) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    size_t value = at + name.size();
    const bool begins = at == 0 || std::string_view(" \t\n;&|('\"").find(text[at - 1]) !=
                                       std::string_view::npos;
    if (!begins || value >= text.size()) continue;
    if (text[value] == '=')
      ++value;
    else if (value = behind_blanks(text, value); value == at + name.size())
      continue;
    if (value >= text.size() || text[value] == '\n') continue;
    const char quote = text[value] == '"' || text[value] == '\'' ? text[value++] : '\0';
    const size_t end = quote ? text.find(quote, value) : end_of_word(text, value);
    found(text, value, (end == std::string::npos ? text.size() : end) - value);
  }
}

// Calls `found(word, offset of the value in it, its length)` for each value of the option in the
// command. An option that comes twice is set twice: programs take the last.
template <typename Found>
void each_value(std::vector<std::string>& command, const std::string& name, const Found& found) {
  const auto all = std::string::npos;
  const std::optional<size_t> script = shell_text(command);
  for (size_t i = 0; i < command.size(); ++i) {
    if (script == i)
      each_in_text(command[i], name, found);
    else if (command[i] == name && i + 1 < command.size() && script != i + 1)
      found(command[++i], size_t{0}, all);
    else if (starts_with(command[i], name + "="))
      found(command[i], name.size() + 1, all);
  }
}

}  // namespace

bool has_option(const std::vector<std::string>& command, const BatchArgument& argument) {
  bool there = false;
  std::vector<std::string> words = command;
  each_value(words, argument.name, [&](const std::string&, size_t, size_t) { there = true; });
  return there;
}

bool takes_appended(const std::vector<std::string>& command, const BatchArgument& argument) {
  const std::optional<size_t> script = shell_text(command);
  if (!script) return true;
  return has_option(command, argument) || hands_words_on(command[*script]);
}

Result<BatchArgument> parse_batch_argument(const std::string& text, const std::string& of) {
  const bool batch = of == "batch-arg";
  const auto wrong = [&] {
    return fail(Code::usage, format("`--{} \"{}\"`: the option that sets the {} in your program, "
                                    "with {{}} for the number: --{} \"--{} {{}}\"",
                                    of, text, batch ? "batch size" : "length of a sequence", of,
                                    batch ? "batch-size" : "max-length"));
  };
  const std::string_view trimmed = trim(text);
  const size_t hole = trimmed.find("{}");
  if (hole == std::string_view::npos || trimmed.find("{}", hole + 2) != std::string_view::npos)
    return wrong();
  const size_t end = trimmed.find_first_of(" =");
  if (end == std::string_view::npos || end == 0 || end >= hole) return wrong();
  BatchArgument out;
  out.name = std::string(trimmed.substr(0, end));
  out.joined = trimmed[end] == '=';
  size_t value = end + 1;
  while (!out.joined && value < hole && trimmed[value] == ' ') ++value;
  out.before = std::string(trimmed.substr(value, hole - value));
  out.after = std::string(trimmed.substr(hole + 2));
  if ((out.before + out.after).find(' ') != std::string::npos) return wrong();
  return out;
}

std::optional<uint64_t> batch_in(const std::vector<std::string>& command,
                                 const BatchArgument& argument) {
  std::optional<uint64_t> batch;
  std::vector<std::string> words = command;
  each_value(words, argument.name, [&](const std::string& word, size_t at, size_t length) {
    std::string_view value = std::string_view(word).substr(at, length);
    batch.reset();
    if (!starts_with(value, argument.before) || !ends_with(value, argument.after)) return;
    if (value.size() < argument.before.size() + argument.after.size()) return;
    value.remove_prefix(argument.before.size());
    value.remove_suffix(argument.after.size());
    batch = parse_uint(value);
  });
  return batch;
}

std::vector<std::string> with_batch(std::vector<std::string> command, const BatchArgument& argument,
                                    uint64_t batch) {
  const std::string value = argument.before + std::to_string(batch) + argument.after;
  bool there = false;
  each_value(command, argument.name, [&](std::string& word, size_t at, size_t length) {
    word.replace(at, length, value);
    there = true;
  });
  if (there) return command;
  // The first word behind a shell's text is its $0, and none of "$@".
  if (const auto script = shell_text(command); script && *script + 1 == command.size())
    command.push_back("sh");
  if (argument.joined) {
    command.push_back(argument.name + "=" + value);
  } else {
    command.push_back(argument.name);
    command.push_back(value);
  }
  return command;
}

}  // namespace cufit::commands
