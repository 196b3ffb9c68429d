// SPDX-License-Identifier: Apache-2.0
#include "host/process/this_process.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace cufit::host {

bool is_terminal(Stream stream) {
  return ::isatty(stream == Stream::in    ? STDIN_FILENO
                  : stream == Stream::out ? STDOUT_FILENO
                                          : STDERR_FILENO) != 0;
}

int terminal_columns() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string program_path() {
  char path[4096];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  return size <= 0 || size == sizeof path ? "" : std::string(path, static_cast<size_t>(size));
}

int process_id() { return ::getpid(); }

unsigned user_id() { return ::geteuid(); }

bool is_root() { return ::geteuid() == 0; }

std::string process_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace cufit::host
