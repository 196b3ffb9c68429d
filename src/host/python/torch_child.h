// SPDX-License-Identifier: Apache-2.0
// --deep: a matrix product in each environment's own torch, by the environment's own Python in a
// child process. The only place where cufit starts a program of the user's; everything else reads
// files.
#pragma once

#include <csignal>
#include <map>
#include <string>
#include <vector>

namespace cufit::host {

struct ProgramResult {
  bool started = false;
  std::string start_error;  // why it was not
  bool timed_out = false;
  int status = 0;        // of waitpid
  std::string out, err;  // the last 64 KiB of each
};

// Runs `arguments[0]` without a shell, in "/", with exactly these variables and an empty stdin.
// Kills it and every process of its group after `seconds`. `with_parent` is the signal that it gets
// where cufit ends before it.
ProgramResult run_program(const std::vector<std::string>& arguments,
                          const std::map<std::string, std::string>& variables, double seconds,
                          int with_parent = SIGKILL);

// What the script of the torch check said: "ok", or what torch said (PythonEnv::torch_run).
std::string torch_answer(const ProgramResult& result);

}  // namespace cufit::host
