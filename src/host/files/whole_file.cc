// SPDX-License-Identifier: Apache-2.0
#include "host/files/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/format.h"
#include "host/files/rlimit_fsize_guard.h"

namespace cufit::host {
namespace {

Error write_error(const std::string& path) {
  return fail(errno == EACCES || errno == EPERM || errno == EROFS ? Code::no_permission : Code::io,
              format("`{}` cannot be written: {}", path, std::strerror(errno)));
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace

Result<void> write_synced(const std::string& path, std::string_view bytes) {
  const FileLimit limit;
  std::string beside = path + ".XXXXXX";
  const int file = mkostemp(beside.data(), O_CLOEXEC);
  if (file < 0) return write_error(path);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  bool good = write_all(file, bytes) && fchmod(file, 0666 & ~mask) == 0 && fsync(file) == 0;
  int why = errno;
  if (close(file) != 0 && good) {
    good = false;
    why = errno;
  }
  if (good && std::rename(beside.c_str(), path.c_str()) != 0) {
    good = false;
    why = errno;
  }
  if (good) return {};
  ::unlink(beside.c_str());
  errno = why;
  return write_error(path);
}

}  // namespace cufit::host
