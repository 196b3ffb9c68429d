// SPDX-License-Identifier: Apache-2.0
// A program run to its end as part of cufit's own work (an installer, a program that is traced): no
// shell, in cufit's process group, so that Ctrl-C reaches both. Used by host/install/installer and
// host/python/traced_run. A program that is to run as if started by hand is started by other means
// (record_run, launch).
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace cufit::host {

// While one lives, SIGINT, SIGTERM and SIGHUP do not end cufit: what was begun is undone first.
// Make it before the first file is made and before any thread is started.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  int caught();  // the first signal that came; 0 = none
  void remember(int number);
  const sigset_t& awaited() const { return awaited_; }
  const sigset_t& before() const { return before_; }

 private:
  sigset_t awaited_, before_;
  int first_ = 0;
};

struct ChildOptions {
  std::vector<std::string> command;  // the program is looked for in PATH unless it holds a slash
  std::vector<std::pair<std::string, std::optional<std::string>>> variables;  // nullopt = unset
  std::string folder;  // working directory; empty = cufit's
  bool show = false;   // its stderr goes to cufit's own, which is a terminal; else it is kept
  // What it writes, to stdout or stderr, goes on to cufit's stderr as it comes; kept in `err`.
  bool pass_on = false;
  bool leave_none = false;           // what it started and left running is ended after it
  double seconds = 0;                // time limit; 0 = none
  std::function<void(double)> tick;  // about every second, with the seconds since its start
  // Asked as often: true ends it as the time limit does.
  std::function<bool(double)> gives_up;
};

struct ChildOutcome {
  int code = 0;  // exit code; 128 + signal where one ended it
  bool timed_out = false;
  std::string out, err;  // the last 256 KiB of each
  double seconds = 0;    // from its start to its end
  uint64_t peak_bytes = 0;  // resident, of its largest process
};

// Error{not_found} where the program cannot be started, Error{cancelled} where a signal asked cufit
// to end; the child was then asked to end too and is gone.
Result<ChildOutcome> run_child(const ChildOptions& options, Interrupts& interrupts);
// Several at once, each as run_child() does it. Only the first passes on what it writes.
Result<std::vector<ChildOutcome>> run_children(std::span<const ChildOptions> options,
                                               Interrupts& interrupts);

}  // namespace cufit::host
