// SPDX-License-Identifier: Apache-2.0
// A user's command for each alarm, run by /bin/sh beside cufit's own work. What is told of the alarm comes in variables and on
// standard input: nothing of it becomes part of the command.
#pragma once

#include <sys/types.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "host/files/host.h"
#include "host/process/spawn.h"

namespace cufit::host {

struct AlarmCall {
  std::string command;                                         // for `sh -c`
  std::vector<std::pair<std::string, std::string>> variables;  // beside cufit's own
  std::string input;
};

struct AlarmFailure {
  std::string command, why;  // why: "exit code 3", one line
};

class AlarmPrograms {
 public:
  static constexpr size_t k_most_running = 4, k_most_waiting = 1024;

  // `variables`: those of cufit's own environment. A program that runs longer gets SIGTERM, and SIGKILL 5 s later.
  AlarmPrograms(std::vector<std::pair<std::string, std::string>> variables, double limit_s)
      : variables_(std::move(variables)), limit_s_(limit_s) {}

  void add(AlarmCall call);
  // Starts what waits, ends what takes too long, and says what failed since. Never waits.
  std::vector<AlarmFailure> attend();
  bool is_idle() const { return running_.empty() && waiting_.empty(); }
  // What runs goes on by itself; what waits is dropped. Returns how many these are.
  size_t leave();

 private:
  struct Running {
    pid_t pid = -1;
    std::string command;
    double begun = 0;
    bool was_asked = false, was_killed = false;  // to end
  };
  void start(const AlarmCall& call);

  std::vector<std::pair<std::string, std::string>> variables_;
  double limit_s_;
  std::deque<AlarmCall> waiting_;
  std::vector<Running> running_;
  std::vector<AlarmFailure> failures_;
  bool said_full_ = false;
};

}  // namespace cufit::host
