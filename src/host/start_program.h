// SPDX-License-Identifier: Apache-2.0
// The user's program, started in an environment: variables as the environment's own `activate` sets
// them, the program looked for in the new PATH, no shell in between. Used by `cufit run`.
#pragma once

#include <string>
#include <vector>

#include "host/host.h"

namespace cufit::host {

// "NAME=value" of every variable of `host`, changed: VIRTUAL_ENV, PATH with ENV/bin first,
// PYTHONHOME gone, VIRTUAL_ENV_PROMPT and CUFIT_CLASS the class.
std::vector<std::string> activated_variables(const Host& host, const std::string& env,
                                             const std::string& class_name);

// Why a program could not be started, with the exit code that a shell gives: 127 not found, 126
// found but not to be executed. Reasons, for messages "run.start.<reason>": not_found, directory,
// no_permission, interpreter (the one of its first line is missing), format, other.
struct StartFailure {
  int exit_code = 127;
  std::string reason;
  std::string program;  // what was looked for or found
  std::string detail;   // the interpreter, or the system's words
};

struct FoundProgram {
  std::string path;  // empty = none
  StartFailure failure;
};
// As execvp looks: a word with a slash is the path itself; else the first executable file of the
// PATH among `variables`.
FoundProgram find_program(const std::string& word, const std::vector<std::string>& variables);

// What an errno of execve means for this path.
StartFailure start_failure(int number, const std::string& path);

// Replaces this process; returns only where that failed.
StartFailure replace_process(const std::string& path, const std::vector<std::string>& command,
                             const std::vector<std::string>& variables);

}  // namespace cufit::host
