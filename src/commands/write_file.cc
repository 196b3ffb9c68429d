// SPDX-License-Identifier: Apache-2.0
#include "commands/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/format.h"
#include "host/files/rlimit_fsize_guard.h"

namespace cufit::commands {
namespace {

Error failed(const std::string& path, const char* what) {
  return fail(Code::io, format("`{}` cannot be {}: {}", path, what, std::strerror(errno)));
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

mode_t default_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

std::string target_of(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  std::string out = resolved == nullptr ? path : resolved;
  std::free(resolved);
  return out;
}

Result<void> write_directly(const std::string& path, std::string_view bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return tl::unexpected(failed(path, "written"));
  const bool good = write_all(file, bytes);
  if (::close(file) != 0 || !good) return tl::unexpected(failed(path, "written in full"));
  return {};
}

}  // namespace

Result<void> write_whole_file(const std::string& path, std::string_view bytes) {
  const host::FileLimit limit;
  struct stat status {};
  mode_t mode = default_mode();
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) {
      errno = EISDIR;
      return tl::unexpected(failed(path, "written"));
    }
    if (::access(path.c_str(), W_OK) != 0) return tl::unexpected(failed(path, "written"));
    if (!S_ISREG(status.st_mode)) return write_directly(path, bytes);
    mode = status.st_mode & 07777;
  }
  const std::string target = target_of(path);
  std::string beside = target + ".XXXXXX";
  const int file = ::mkstemp(beside.data());
  if (file < 0) return tl::unexpected(failed(path, "written"));
  const bool good = write_all(file, bytes) && ::fchmod(file, mode) == 0;
  if (::close(file) != 0 || !good || ::rename(beside.c_str(), target.c_str()) != 0) {
    const Error error = failed(path, "written in full");
    ::unlink(beside.c_str());
    return tl::unexpected(error);
  }
  return {};
}

}  // namespace cufit::commands
