// SPDX-License-Identifier: Apache-2.0
// The user's program, started in an environment: variables as the environment's own `activate` sets
// them, the program looked for in the new PATH, no shell in between. Used by `cufit run`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "facts/supervised_run.h"
#include "host/files/host.h"

namespace cufit::host {

// "NAME=value" of every variable of `host`, changed: VIRTUAL_ENV, PATH with ENV/bin first,
// PYTHONHOME gone, VIRTUAL_ENV_PROMPT and CUFIT_CLASS the class.
std::vector<std::string> activated_variables(const Host& host, const std::string& env,
                                             const std::string& class_name);

struct FoundProgram {
  std::string path;  // empty = none
  facts::StartFailure failure;
};
// As execvp looks: a word with a slash is the path itself; else the first executable file of the
// PATH among `variables`.
FoundProgram find_program(const std::string& word, const std::vector<std::string>& variables);

// "/usr/bin/env python" of a script that begins with "#!/usr/bin/env python"; empty = no script.
std::string_view interpreter_line(std::string_view head);

// What an errno of execve means for this path.
facts::StartFailure start_failure(int number, const std::string& path);

// Replaces this process; returns only where that failed.
facts::StartFailure replace_process(const std::string& path,
                                    const std::vector<std::string>& command,
                                    const std::vector<std::string>& variables);

}  // namespace cufit::host
