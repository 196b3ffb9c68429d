// SPDX-License-Identifier: Apache-2.0
// Trainers read their options from a file that the command names (`--config_file gui.toml`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/fit/batch_argument.h"
#include "host/files/host.h"

namespace cufit::commands {

struct NumberInFile {
  std::string key;  // as it is written
  uint64_t value = 0;
  std::string file;
};

// Of each line of the TOML, YAML and JSON files that the words name.
std::vector<NumberInFile> numbers_in_files(const host::Host& files,
                                           const std::vector<std::string>& words);

// The number that stands for the option in the TOML, YAML or JSON files that the command names:
// lines `train_batch_size = 2`, `train_batch_size: 2`. Nullopt where there is none, or several
// that differ.
std::optional<uint64_t> batch_in_files(const host::Host& files,
                                       const std::vector<std::string>& command,
                                       const BatchArgument& argument);

}  // namespace cufit::commands
