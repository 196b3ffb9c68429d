// SPDX-License-Identifier: Apache-2.0
// A limit on the size of files (`ulimit -f`, of batch systems) ends a process by a signal where it
// writes past it. While one of these lives, writing fails as on a full disk, and that can be said.
// Programs inherit what is ignored: none may be started meanwhile unless it is set back for it.
#pragma once

#include <csignal>

namespace cufit::host {

class FileLimit {
 public:
  FileLimit() : before_(std::signal(SIGXFSZ, SIG_IGN)) {}
  ~FileLimit() {
    if (before_ != SIG_ERR) std::signal(SIGXFSZ, before_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  void set_back() const {
    if (before_ != SIG_ERR) std::signal(SIGXFSZ, before_);
  }

 private:
  void (*before_)(int);
};

}  // namespace cufit::host
