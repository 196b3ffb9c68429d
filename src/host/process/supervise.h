// SPDX-License-Identifier: Apache-2.0
// The user's program as a child whose output is passed on unchanged and whose last part is kept.
// Used by `cufit run --supervise`.
//
// Its stdin is cufit's own, in the same session and process group: Ctrl-C, Ctrl-Z and what it reads
// are as if it were started by hand. Where cufit's stdout (stderr) is a terminal, the program gets
// a pseudo-terminal of the same size that leaves every byte as it is; else a pipe, one for both
// where both go to the same file. Programs that draw a whole screen through their stdout's terminal
// settings (editors, nvtop) need to be started without this.
#pragma once

#include <string>
#include <vector>

#include "facts/supervised_run.h"
#include "host/files/host.h"

namespace cufit::host {

struct SuperviseOptions {
  std::string program;                 // path, from find_program
  std::vector<std::string> command;    // argv
  std::vector<std::string> variables;  // "NAME=value"
  size_t tail_bytes = 256u << 10;
  bool sample_memory = true;
};

// Signals that reach cufit are passed on; what the terminal sends reaches the program by itself.
Result<facts::Supervised> supervise(const Host& host, const SuperviseOptions& options);

}  // namespace cufit::host
