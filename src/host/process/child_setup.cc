// SPDX-License-Identifier: Apache-2.0
#include "host/process/child_setup.h"

#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cufit::host {
namespace {

void reset_signals() {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);  // write() reports the parent's end instead
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Moves the pipe out of the way of 0, 1 and 2 if cufit was started without them; returns its new
// number.
int close_other_files(int pipe) {
  if (pipe < 3) pipe = fcntl(pipe, F_DUPFD, 3);
  int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);  // the driver prints; that is not cufit's output
#ifdef SYS_close_range                            // Linux 5.9; 65536 calls of close take 10 ms
  bool before = pipe == 3 || syscall(SYS_close_range, 3u, static_cast<unsigned>(pipe) - 1, 0u) == 0;
  if (before && syscall(SYS_close_range, static_cast<unsigned>(pipe) + 1, ~0u, 0u) == 0)
    return pipe;
#endif
  rlimit limit{};
  bool small = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536;
  int end = small ? static_cast<int>(limit.rlim_cur) : 65536;
  for (int fd = 3; fd < end; ++fd) {
    if (fd != pipe) close(fd);
  }
  return pipe;
}

void set_environment(const Host& host) {
  std::vector<std::pair<std::string, std::string>> variables = host.variables();
  clearenv();
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  // The driver would keep the compiled check in ~/.nv/ComputeCache; cufit leaves nothing behind.
  setenv("CUDA_CACHE_DISABLE", "1", 1);
}

}  // namespace

int set_up_child(const Host& host, int pipe, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before prctl took effect
  reset_signals();
  rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);  // a crashing driver must not leave a core file
  set_environment(host);
  return close_other_files(pipe);
}

}  // namespace cufit::host
