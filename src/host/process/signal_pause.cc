// SPDX-License-Identifier: Apache-2.0
#include "host/process/signal_pause.h"

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace cufit::host {
namespace {

constexpr int k_ending_signals[] = {SIGINT, SIGTERM, SIGHUP};

}  // namespace

SignalPause::SignalPause() {
  sigemptyset(&awaited_);
  for (const int number : k_ending_signals) {
    struct sigaction now {};
    // Blocked, an ignored signal would be kept as well (`nohup`, a shell's job in the background).
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN)
      sigaddset(&awaited_, number);
  }
  sigprocmask(SIG_BLOCK, &awaited_, &before_);
}

SignalPause::~SignalPause() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

int SignalPause::pause(double seconds) const {
  const double end = running_seconds() + std::max(seconds, 0.0);
  while (true) {
    const double left = std::max(end - running_seconds(), 0.0);
    timespec time{static_cast<time_t>(left), 0};
    time.tv_nsec = static_cast<long>((left - static_cast<double>(time.tv_sec)) * 1e9);
    const int number = sigtimedwait(&awaited_, nullptr, &time);
    if (number > 0) return number;
    // EINTR: another signal, or the process was stopped and goes on.
    if (errno != EINTR) return 0;
  }
}

void end_by_signal(int number) {
  signal(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  raise(number);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
}

void ignore_broken_pipes() { signal(SIGPIPE, SIG_IGN); }

double running_seconds() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace cufit::host
