// SPDX-License-Identifier: Apache-2.0
// A program run with torch's memory history switched on: a folder that holds a sitecustomize.py
// stands first on the PYTHONPATH of this one child and is removed when it ends. The child runs as
// if started by hand: same terminal, same process group, its exit code is passed on.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace cufit::host {

struct RecordOptions {
  std::vector<std::string> command;  // program and arguments; the program is looked for in PATH
  std::string folder;                // of the snapshots; absolute, exists
  uint64_t events = 0;               // of the ring, per device
  std::string stacks;                // "python" or "all"
  bool at_exit = false;              // also a snapshot at the end
  // What the child says on stderr, with {names} for what only it knows: "WROTE" -> "wrote {path}".
  std::vector<std::pair<std::string, std::string>> sentences;
};

struct RecordedSnapshot {
  std::string path;
  // Of a moment at which memory ran out: which one of its process, and how many there were. 0:
  // of no such moment.
  uint64_t moment = 0, moments = 0;
};

struct RecordOutcome {
  int exit_code = 0;                        // 128 + signal where one ended it, as shells tell it
  std::vector<RecordedSnapshot> snapshots;  // in the order of processes; of one that was written
                                            // again, as it is now
  size_t pythons = 0;                       // processes that read the sitecustomize
  size_t recording = 0;                     // of these, processes that began to record
  std::vector<std::string> unwritten;       // why a snapshot could not be written
  std::vector<std::string> failures;        // why recording could not begin, one per process
};

// SIGUSR1, SIGTERM, SIGHUP, SIGINT and SIGQUIT are passed on: SIGUSR1 to every process below that
// waits for it, the others to the child. Error{io} where the program cannot be started.
Result<RecordOutcome> record_run(const RecordOptions& options);

// The text of sitecustomize.py.
const char* record_sitecustomize();

}  // namespace cufit::host
