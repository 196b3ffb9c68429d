// SPDX-License-Identifier: Apache-2.0
// `--batch-arg '--batch-size {}'`: how a batch size is written into the arguments of a program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace cufit::commands {

// Either words ("--batch-size {}") or one word with '=' ("train.batch_size={}").
struct BatchArgument {
  std::string name;           // "--batch-size"
  bool joined = false;        // NAME=N is how it is appended; in a command either form is found
  std::string before, after;  // of the number within the value: "" and "" for "{}"
};

// `of`: the option of cufit that says it. Error{usage}: no {}, more than one, or no name before it.
Result<BatchArgument> parse_batch_argument(const std::string& text,
                                           const std::string& of = "batch-arg");

// Whether the option stands in the command, with a number or another value. In the text of
// `bash -c '...'` it is looked for, too.
bool has_option(const std::vector<std::string>& command, const BatchArgument& argument);

// Whether an option behind the command's last word would come to the program: not behind the text
// of a shell, unless the option stands in that text, or the text hands its words on ("$@").
bool takes_appended(const std::vector<std::string>& command, const BatchArgument& argument);

// The batch size that stands in the command; nullopt where the option does not, or holds no number.
std::optional<uint64_t> batch_in(const std::vector<std::string>& command,
                                 const BatchArgument& argument);

// The command with that batch size: in the place of the one that it has, else appended.
std::vector<std::string> with_batch(std::vector<std::string> command, const BatchArgument& argument,
                                    uint64_t batch);

}  // namespace cufit::commands
