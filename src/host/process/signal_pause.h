// SPDX-License-Identifier: Apache-2.0
// Waiting that a signal ends: while one of these lives, what asks the process to end (SIGINT, SIGTERM, SIGHUP) is
// kept until pause() takes it, so that what was made can be taken away first. SIGQUIT (Ctrl-\) ends it at once, also in a
// driver that hangs. Signals that were ignored stay ignored.
#pragma once

#include <csignal>

namespace cufit::host {

class SignalPause {
 public:
  SignalPause();
  ~SignalPause();  // signals are as they were; one that was not taken is delivered
  SignalPause(const SignalPause&) = delete;
  SignalPause& operator=(const SignalPause&) = delete;

  // The signal that came before the time was over; 0 = none.
  int pause(double seconds) const;

 private:
  sigset_t awaited_, before_;
};

// Ends as the signal ends a program that knows nothing of it: a shell's loop around this one ends with Ctrl-C, too.
void end_by_signal(int number);

// To write where nobody reads is an error then, not the end: of stdout, and of connections in libcurl before 7.87, whose TLS
// writes without MSG_NOSIGNAL. Programs that are started with default_signals do not inherit it.
void ignore_broken_pipes();

double running_seconds();  // CLOCK_BOOTTIME: no setting of the clock moves it, and sleep counts

}  // namespace cufit::host
