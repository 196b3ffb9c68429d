// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/batch_in_files.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"

namespace cufit::commands {
namespace {

constexpr size_t k_most_config_bytes = 1u << 20, k_most_configs = 16;

// The last part of `--train-batch-size` and of `train.batch_size`, as files write it.
std::string key_of(const BatchArgument& argument) {
  std::string key = argument.name.substr(argument.name.find_last_of('.') + 1);
  key.erase(0, std::min(key.find_first_not_of('-'), key.size()));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

std::string_view without_quotes(std::string_view text) {
  text = trim(text);
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front())
    return text.substr(1, text.size() - 2);
  return text;
}

// Of a line of TOML, YAML or JSON that holds one key.
std::optional<NumberInFile> number_in(std::string_view line) {
  const size_t sign = line.find_first_of("=:");
  if (sign == std::string_view::npos) return std::nullopt;
  std::string_view value = trim(line.substr(sign + 1));
  value = trim(value.substr(0, value.find('#')));
  if (ends_with(value, ",")) value.remove_suffix(1);
  const std::optional<uint64_t> number = parse_uint(without_quotes(value));
  if (!number) return std::nullopt;
  return NumberInFile{std::string(without_quotes(line.substr(0, sign))), *number, ""};
}

// What of the command may be such a file. sd-scripts adds `.toml` itself.
std::vector<std::string> configs_of(const std::vector<std::string>& command) {
  std::vector<std::string> out;
  for (size_t i = 0; i < command.size() && out.size() < k_most_configs; ++i) {
    const std::string& word = command[i];
    const size_t sign = starts_with(word, "-") ? word.find('=') : std::string::npos;
    const std::string value = sign == std::string::npos ? word : word.substr(sign + 1);
    const std::string option = sign != std::string::npos ? word.substr(0, sign)
                               : i > 0                   ? command[i - 1]
                                                         : std::string();
    bool named = false;
    for (const char* ending : {".toml", ".yaml", ".yml", ".json"})
      named = named || ends_with(value, ending);
    if (named)
      out.push_back(value);
    else if (starts_with(option, "-") && contains(option, "config") && !starts_with(value, "-"))
      out.push_back(value + ".toml");
  }
  return out;
}

}  // namespace

std::vector<NumberInFile> numbers_in_files(const host::Host& files,
                                           const std::vector<std::string>& words) {
  std::vector<NumberInFile> out;
  for (const std::string& config : configs_of(words)) {
    const Result<std::string> text = files.read_file(config, k_most_config_bytes);
    if (!text) continue;
    for (const std::string_view line : split_lines(*text)) {
      std::optional<NumberInFile> number = number_in(line);
      if (!number || number->value == 0) continue;
      number->file = config;
      out.push_back(std::move(*number));
    }
  }
  return out;
}

std::optional<uint64_t> batch_in_files(const host::Host& files,
                                       const std::vector<std::string>& command,
                                       const BatchArgument& argument) {
  const std::string key = key_of(argument);
  std::optional<uint64_t> found;
  for (NumberInFile& number : numbers_in_files(files, command)) {
    std::replace(number.key.begin(), number.key.end(), '-', '_');
    if (number.key != key) continue;
    if (found && *found != number.value) return std::nullopt;
    found = number.value;
  }
  return found;
}

}  // namespace cufit::commands
