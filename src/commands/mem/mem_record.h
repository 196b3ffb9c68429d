// SPDX-License-Identifier: Apache-2.0
// `cufit mem record -- python train.py`: the program with torch's memory history on.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"

namespace cufit::commands {

struct MemRecordRequest {
  std::vector<std::string> command;
  std::string out = ".";  // a folder
  std::optional<std::string> events;
  std::string stacks = "python";
  bool at_exit = false;
};

std::span<const Option> mem_record_options();
int run_mem_record(const Context& context, const MemRecordRequest& request);

}  // namespace cufit::commands
