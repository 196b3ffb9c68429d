// SPDX-License-Identifier: Apache-2.0
// A file that is opened without waiting (a pipe has nobody at its other end), looked at, and read up to
// a limit.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>

namespace cufit::host {

class KeptFile {
 public:
  KeptFile(const std::string& path, int flags)
      : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags)) {}
  ~KeptFile() {
    if (file_ >= 0) ::close(file_);
  }
  KeptFile(const KeptFile&) = delete;
  KeptFile& operator=(const KeptFile&) = delete;
  bool status(struct stat& out) const { return file_ >= 0 && ::fstat(file_, &out) == 0; }
  // nullopt: it cannot be read, or is longer.
  std::optional<std::string> read(size_t most) const {
    std::string out(most + 1, '\0');
    size_t got = 0;
    while (got < out.size()) {
      const ssize_t more = ::read(file_, out.data() + got, out.size() - got);
      if (more < 0 && errno == EINTR) continue;
      if (more < 0) return std::nullopt;
      if (more == 0) break;
      got += static_cast<size_t>(more);
    }
    if (got > most) return std::nullopt;
    out.resize(got);
    return out;
  }

 private:
  int file_;
};

}  // namespace cufit::host
