// SPDX-License-Identifier: Apache-2.0
#include "host/driver/worker_answer.h"

#include <cerrno>
#include <csignal>
#include <ctime>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/format.h"
#include "host/driver/driver_calls.h"

namespace cufit::host {
namespace {

constexpr size_t k_most_worker_bytes = 16u << 20;

// All that the child writes, until it closes its end; false: the time is over.
bool read_to_end(int pipe, double limit_seconds, std::string& out) {
  const double end = DriverCalls::now() + limit_seconds;
  while (true) {
    const double left = end - DriverCalls::now();
    if (left <= 0 || out.size() > k_most_worker_bytes) return false;
    pollfd polled{pipe, POLLIN, 0};
    if (poll(&polled, 1, static_cast<int>(left * 1000) + 1) <= 0) continue;
    char bytes[16384];
    const ssize_t count = read(pipe, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    out.append(bytes, static_cast<size_t>(count));
  }
}

// Never waits for a child that sits in the kernel.
void end_child(pid_t pid) {
  for (int i = 0; i < 4000; ++i) {
    if (waitpid(pid, nullptr, WNOHANG) != 0) return;
    if (i == 1000) kill(pid, SIGKILL);
    timespec pause{0, 500'000};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace

Result<ChildAnswers> read_worker_answer(const SpawnedWorker& worker, double limit_seconds) {
  std::string bytes;
  const bool in_time = read_to_end(worker.answers.get(), limit_seconds, bytes);
  if (!in_time) kill(worker.pid, SIGKILL);
  end_child(worker.pid);
  ChildAnswers answers;
  take_frames(bytes, answers);
  if (!answers.finished)
    return fail(in_time ? Code::io : Code::timeout,
                in_time
                    ? format("NVML ended its process in {}", answers.call)
                    : format("NVML: {} did not return within {:g} s", answers.call, limit_seconds));
  return answers;
}

}  // namespace cufit::host
