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

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/memory_kills.h"
#include "host/memory_sampler.h"
#include "host/start_program.h"

namespace cufit::host {

struct SuperviseOptions {
  std::string program;                 // path, from find_program
  std::vector<std::string> command;    // argv
  std::vector<std::string> variables;  // "NAME=value"
  size_t tail_bytes = 256u << 10;
  bool sample_memory = true;
};

struct Supervised {
  std::optional<StartFailure> not_started;
  int pid = 0;
  int exit_code = 0;          // 128 + signal where one ended it
  int signal = 0;             // 0 = it ended by itself
  bool asked_to_end = false;  // SIGINT, SIGTERM, SIGHUP or SIGQUIT came while it ran
  double seconds = 0;
  std::string tail;               // of stdout and stderr as they came, from a line's begin on
  uint64_t output_bytes = 0;      // of all of it
  std::vector<GpuMemory> memory;  // the fullest of the last ten seconds
  double memory_age_seconds = 0;  // before the end
  MemoryKills kills_before, kills_after;
  std::optional<HostMemory> host_memory;  // the last sample of four a second
  double host_memory_age_seconds = 0;     // before the end
};

// Signals that reach cufit are passed on; what the terminal sends reaches the program by itself.
Result<Supervised> supervise(const Host& host, const SuperviseOptions& options);

}  // namespace cufit::host
