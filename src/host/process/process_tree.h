// SPDX-License-Identifier: Apache-2.0
// Processes of this machine and who started whom, from /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace cufit::host {

struct ProcessState {
  char state = 0;  // 0: there is no such process
  pid_t parent = 0;
  uint64_t start_ticks = 0;  // since the machine started: no two processes of a pid have the same
};
// Of /proc/PID/stat; 0 = this process.
ProcessState process_state(pid_t pid);

// The inode of this process's pid namespace; 0 = not known.
uint64_t pid_namespace();

// `first` and all below it that this user can see, in the order of their numbers.
std::vector<pid_t> processes_from(pid_t first);

// The values of a variable with which processes of this user were started; others' cannot be read.
std::set<std::string> values_in_processes(const std::string& variable);

// The program of a command line that NVML gives in one piece, "/my tools/python train.py": up to the first blank, but for a
// process of this machine with that line, whose first word is told by /proc/PID/cmdline.
std::string program_of_line(pid_t pid, const std::string& line);

// The names in a folder, sorted, "." and ".." among them; none where it cannot be listed.
std::vector<std::string> names_in(const std::string& folder);
// The first 64 KiB of a file; empty where it cannot be read.
std::string read_small(const std::string& path);

}  // namespace cufit::host
