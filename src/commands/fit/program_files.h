// SPDX-License-Identifier: Apache-2.0
// Files that decide the answer for a program, and how they were before it was traced. What changed
// meanwhile was traced in nobody knows which state.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fit/answer/traces.h"
#include "host/files/host.h"

namespace cufit::commands {

inline constexpr size_t k_most_program_files = 1024;

using FileMarks = std::map<std::string, std::string>;  // host::file_mark by path

// Python files that stand beside a script, which an import would take.
std::vector<std::string> files_beside(const host::Host& machine,
                                      const std::vector<std::string>& command);

struct FilesBefore {
  FileMarks marks;
  int64_t began = 0;  // seconds since 1970, by the clock of files
};
// Files among the words, model descriptions in folders among them, and Python and configuration files
// beside the scripts and below them. Relative to the working folder.
FilesBefore files_before(const host::Host& machine, const std::vector<std::string>& command);

// With those that the trace named. Empty: one changed since, cannot be read, or there are too many.
FileMarks files_of_trace(const FilesBefore& before, const fit::Traces& traces);

}  // namespace cufit::commands
