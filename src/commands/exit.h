// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cufit::commands {

// Exit codes of every command.
// k_refused: `cufit run` started no program; a finding like any other, and preflight asks
// beforehand.
enum Exit {
  k_ok = 0,
  k_findings = 1,
  k_usage = 2,
  k_failed = 3,
  k_not_cached = 4,  // `cufit fit --cached`: no answer is kept
  k_refused = 1,
  k_timed_out = 75,    // `cufit run --wait --timeout`; EX_TEMPFAIL of sysexits.h: try again later
  k_interrupted = 130  // Ctrl-C; another signal: interrupted_exit()
};

// As a shell says which signal ended a program.
inline int interrupted_exit(int signal) { return signal > 0 ? 128 + signal : k_interrupted; }

}  // namespace cufit::commands
