// SPDX-License-Identifier: Apache-2.0
// The commands of an argument vector (of a container, of an image's entry point) and of the shell
// scripts in it. Good enough for programs, options and their values: quotes are taken off, and what
// they hold is read like the rest, as `bash -c "..."` is; "$(...)" is one word with its blanks.
// Comments and here-documents are left out. Nothing is run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cufit::formats {

struct ShellCommand {
  std::vector<std::string> words;
  std::vector<uint32_t> lines;  // where each word ends, in its script; 0 = an argument
  std::string joint;            // what ends it in a script: "&&", "||", ";", "|", "&"; else empty
};

// At most 20 000 words.
std::vector<ShellCommand> read_shell_script(std::string_view script);
// A word after `sh -c`, and one of several lines, is a script.
std::vector<ShellCommand> read_commands(const std::vector<std::string>& arguments);

// Where the program stands: behind `A=1`, `exec`, `env`, `if` and their like; words.size() = nowhere.
size_t program_at(const std::vector<std::string>& words);
std::string_view program_name(std::string_view word);  // "sshd" of "/usr/sbin/sshd"

// Programs that fetch, move or print: `pip install deepspeed` starts no deepspeed.
bool starts_nothing(const std::vector<std::string>& words);

}  // namespace cufit::formats
