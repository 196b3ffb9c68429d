// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/batch_argument.h"

#include "base/format.h"
#include "base/number.h"

namespace cufit::commands {
namespace {

// Calls `found(word, offset of the value in it)` for each value of the option in the command. An
// option that comes twice is set twice: programs take the last.
template <typename Found>
void each_value(std::vector<std::string>& command, const std::string& name, const Found& found) {
  for (size_t i = 0; i < command.size(); ++i) {
    if (command[i] == name && i + 1 < command.size())
      found(command[++i], size_t{0});
    else if (starts_with(command[i], name + "="))
      found(command[i], name.size() + 1);
  }
}

}  // namespace

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
  each_value(words, argument.name, [&](const std::string& word, size_t at) {
    std::string_view value = std::string_view(word).substr(at);
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
  each_value(command, argument.name, [&](std::string& word, size_t at) {
    word.replace(at, std::string::npos, value);
    there = true;
  });
  if (there) return command;
  if (argument.joined) {
    command.push_back(argument.name + "=" + value);
  } else {
    command.push_back(argument.name);
    command.push_back(value);
  }
  return command;
}

}  // namespace cufit::commands
