// SPDX-License-Identifier: Apache-2.0
#include "host/files/atomic_write.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/format.h"
#include "host/files/rlimit_fsize_guard.h"

namespace cufit::host {
namespace {

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

bool sync_file(int file) {
  return ::fsync(file) == 0 || errno == EINVAL;  // EINVAL: the file system has no such thing
}

Error result_error(const std::string& path, const char* what, int number) {
  return fail(Code::io, format("`{}` cannot be {}: {}", path, what, std::strerror(number)));
}

std::string target_of(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  std::string out = resolved == nullptr ? path : resolved;
  std::free(resolved);
  return out;
}

Result<void> write_directly(const std::string& path, std::string_view bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return tl::unexpected(result_error(path, "written", errno));
  const bool good = write_all(file, bytes);
  if (::close(file) != 0 || !good)
    return tl::unexpected(result_error(path, "written in full", errno));
  return {};
}

}  // namespace

// As the kernel has it with protected_symlinks on: in a folder where everybody may make files
// (/tmp), a link is followed only if it is this user's own or the folder's owner's.
bool is_planted_link(const std::string& path) {
  struct stat link {
  }, folder{};
  if (::lstat(path.c_str(), &link) != 0 || !S_ISLNK(link.st_mode)) return false;
  const size_t slash = path.rfind('/');
  const std::string parent = slash == path.npos ? "." : path.substr(0, slash + 1);
  if (::stat(parent.c_str(), &folder) != 0) return false;
  const bool shared = (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
  return shared && link.st_uid != ::geteuid() && link.st_uid != folder.st_uid;
}

int replace_file(const std::string& path, std::string_view bytes, const ReplaceOptions& options) {
  const FileLimit limit;
  std::string beside = path + ".XXXXXX";
  const int file = ::mkostemp(beside.data(), O_CLOEXEC);
  if (file < 0) return errno;
  const mode_t mode = options.mode ? static_cast<mode_t>(*options.mode) : default_mode();
  const bool written =
      write_all(file, bytes) && ::fchmod(file, mode) == 0 && (!options.sync || sync_file(file));
  int why = written ? 0 : errno != 0 ? errno : EIO;  // a write of nothing sets no errno
  if (::close(file) != 0 && why == 0) why = errno;
  if (why == 0 && std::rename(beside.c_str(), path.c_str()) != 0) why = errno;
  if (why != 0) ::unlink(beside.c_str());
  return why;
}

int writing_fails(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return EISDIR;
    if (::access(path.c_str(), W_OK) != 0) return errno;
    if (!S_ISREG(status.st_mode)) return 0;
  }
  return ::access(folder.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
}

Result<void> write_whole_file(const std::string& path, std::string_view bytes) {
  const FileLimit limit;
  if (is_planted_link(path)) return tl::unexpected(result_error(path, "written", EACCES));
  struct stat status {};
  ReplaceOptions options;
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return tl::unexpected(result_error(path, "written", EISDIR));
    if (::access(path.c_str(), W_OK) != 0)
      return tl::unexpected(result_error(path, "written", errno));
    if (!S_ISREG(status.st_mode)) return write_directly(path, bytes);
    options.mode = status.st_mode & 07777;
  }
  const int why = replace_file(target_of(path), bytes, options);
  if (why == 0) return {};
  // The folder is missing or closed; else the file could be begun and not ended.
  const bool begun = why != ENOENT && why != EACCES && why != EROFS && why != ENOTDIR;
  return tl::unexpected(result_error(path, begun ? "written in full" : "written", why));
}

Result<void> write_synced(const std::string& path, std::string_view bytes) {
  const int why = replace_file(path, bytes, {.mode = std::nullopt, .sync = true});
  if (why == 0) return {};
  return fail(why == EACCES || why == EPERM || why == EROFS ? Code::no_permission : Code::io,
              format("`{}` cannot be written: {}", path, std::strerror(why)));
}

void remove_file(const std::string& path) { ::unlink(path.c_str()); }
void remove_empty_folder(const std::string& path) { ::rmdir(path.c_str()); }
bool may_run(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

}  // namespace cufit::host
