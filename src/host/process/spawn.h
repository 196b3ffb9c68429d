// SPDX-License-Identifier: Apache-2.0
// The one place that starts processes: what a child inherits (files, signals, variables, its life
// with cufit's) is decided here and nowhere else, and tools/check-layers looks for others. Waiting
// and what comes out of the pipes are the caller's.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "host/files/host.h"

namespace cufit::host {

// A file that is closed with its owner.
class FileHandle {
 public:
  explicit FileHandle(int number = -1) : number_(number) {}
  ~FileHandle() { reset(); }
  FileHandle(FileHandle&& other) noexcept : number_(other.release()) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    reset(other.release());
    return *this;
  }
  int get() const { return number_; }  // -1 = closed
  int release() { return std::exchange(number_, -1); }
  void reset(int number = -1);

 private:
  int number_;
};

struct Pipe {
  FileHandle read_end, write_end;  // no program inherits them
};
Result<Pipe> open_pipe();  // Error{io}

struct SpawnOptions {
  std::vector<std::string> command;
  std::string path;  // the program; empty = command[0], looked for in PATH unless it has a slash
  // "NAME=value" of all of them; nullopt = cufit's own, changed by `variables` (nullopt = unset).
  std::optional<std::vector<std::string>> environment;
  std::vector<std::pair<std::string, std::optional<std::string>>> variables;
  std::string folder;            // working directory; empty = cufit's
  bool empty_input = false;      // stdin is /dev/null; else cufit's own, or `in`
  int in = -1;                   // what becomes stdin; -1 = as `empty_input` says
  int out = -1, err = -1;        // what becomes stdout and stderr; -1 = cufit's own
  int signal_with_parent = 0;    // that it gets where cufit ends before it; 0 = none
  bool own_group = false;        // of processes: a signal to -pid reaches what it starts, too
  bool default_signals = false;  // none is ignored
  sigset_t blocked{};            // signals that it begins with blocked
  std::function<void()> before;  // in the child, after its group is set; may not allocate
};

struct SpawnedProgram {
  pid_t pid = -1;
  FileHandle failure;  // closed by the program's start, or told why there was none
  // 0 = it runs (or nothing is told yet, without `wait`); else the errno of its options. Ask once.
  int start_error(bool wait);
};

// In the child, in this order: group, `before`, variables, folder, files, signals, the program.
// SIGCHLD is no longer ignored in cufit: it would take the child's exit code away. Only while cufit
// has one thread: variables are set after the fork. Error{io}: there is no process. A program that
// is not there is SpawnedProgram::start_error.
Result<SpawnedProgram> spawn_program(const SpawnOptions& options);

struct SpawnedWorker {
  pid_t pid = -1;
  FileHandle answers;  // read end of the pipe that `work` writes to
};

// A child that does some of cufit's own work where it may hang or crash, set up by set_up_child().
// It ends when `work` returns, without destructors or atexit: a driver's own can hang.
Result<SpawnedWorker> spawn_worker(const Host& host, const std::function<void(int pipe)>& work);

// Replaces this process; returns the errno of why not.
int become_program(const std::string& path, const std::vector<std::string>& command,
                   const std::vector<std::string>& environment);

}  // namespace cufit::host
