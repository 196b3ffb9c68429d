// SPDX-License-Identifier: Apache-2.0
// The program that `cufit fit` is asked about.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cufit::commands {

// The program, and how it is traced.
struct FitProgramRequest {
  std::vector<std::string> command;      // with its arguments
  std::optional<std::string> function;   // MODULE:NAME instead of a script
  std::optional<std::string> batch_arg;  // "--batch-size {}": how the batch size is written into it
  std::optional<std::string> seq, seq_arg;  // length of a sequence, and how it is written into it
  std::optional<std::string> steps, timeout;
  std::optional<std::string> keep;  // a folder for the event files
  std::vector<std::string> events;  // files of `keep` instead of a program
  std::optional<std::string> world;  // ranks: "8", "2,4,8", "auto"
  std::optional<std::string> ranks;  // "all": which of them are traced
  bool plan = false;                // traced for plans, too
};

}  // namespace cufit::commands
