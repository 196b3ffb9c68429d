// SPDX-License-Identifier: Apache-2.0
// A training program run up to its training loop, whose DataLoader and step are then timed, each alone: a folder with
// python/cufit_loader as sitecustomize.py stands first on the PYTHONPATH of this one child, which it ends itself. What the
// program writes goes to cufit's stderr. Used by `cufit bench loader`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/process/child_process.h"

namespace cufit::host {

struct LoaderRunOptions {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::optional<std::string>>> variables;  // of an environment
  std::vector<uint64_t> workers;                                              // counts to try
  uint64_t cpus =
      0;  // that all processes of a job share: counts that do not fit are left out; 0: all are tried
  double seconds = 60;         // of measuring
  double start_seconds = 600;  // until the first batch, and for what outlasts `seconds`
};

struct LoaderRun {
  int exit_code = 0;
  bool timed_out = false;
  std::string answer;  // JSON, as far as it came; empty: no DataLoader was iterated
  std::string said;    // what it wrote last, up to 256 KiB
};

// Error{not_found} where the program cannot be started, Error{cancelled} where a signal asked cufit to end. Nothing that it
// started runs on.
Result<LoaderRun> loader_run(const LoaderRunOptions& options, Interrupts& interrupts);

const char* loader_sitecustomize();  // the text of python/cufit_loader

}  // namespace cufit::host
