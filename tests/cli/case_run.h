// SPDX-License-Identifier: Apache-2.0
// Runs the script of one case with /bin/sh, in pipes or on a pseudo-terminal.
#pragma once

#include <filesystem>
#include <string>

namespace cufit::cli_tests {

struct Outcome {
  std::string out, err;
  int code = 0;  // of the shell; 128 + the signal that ended it
};

constexpr int k_no_terminal = -1;  // no /dev/ptmx, as in a bare chroot

struct Place {
  std::filesystem::path tree;     // where the script starts
  std::filesystem::path program;  // $CUFIT
  std::filesystem::path scratch;  // $TMP
};

// Both streams apart.
Outcome run_piped(const std::string& script, const Place& place);

// Both streams as `out`, as a terminal of that width gets them.
Outcome run_on_terminal(const std::string& script, const Place& place, int columns);

}  // namespace cufit::cli_tests
