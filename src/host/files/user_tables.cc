// SPDX-License-Identifier: Apache-2.0
#include "host/files/user_tables.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/path.h"
#include "host/files/atomic_write.h"
#include "host/files/paths.h"

namespace cufit::host {
namespace {

struct OpenTablesFile {
  int number;
  ~OpenTablesFile() {
    if (number >= 0) ::close(number);
  }
};

// root may write everything anyway.
bool is_own(const struct stat& status) {
  return (status.st_uid == ::geteuid() || status.st_uid == 0) &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

Error not_own(const std::string& path) {
  return fail(Code::no_permission,
              format("{}: another user could have written it; it is not read", path));
}

std::string read_all(int file, size_t most_bytes) {
  std::string out(most_bytes + 1, '\0');
  size_t size = 0;
  while (size < out.size()) {
    const ssize_t got = ::read(file, out.data() + size, out.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  out.resize(size);
  return out;
}

}  // namespace

std::string user_tables_path(const Host& host) {
  std::string base = host.variable("XDG_DATA_HOME").value_or("");
  if (base.empty() || base[0] != '/') {
    const std::string home = host.variable("HOME").value_or("");
    if (home.empty() || home[0] != '/') return {};
    base = home + "/.local/share";
  }
  return base + "/cufit/tables/tables.toml";
}

Result<std::optional<std::string>> read_user_tables(const std::string& path, size_t most_bytes) {
  const OpenTablesFile file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0 && (errno == ENOENT || errno == ENOTDIR)) return std::optional<std::string>();
  if (file.number < 0) return fail(Code::io, format("{}: {}", path, std::strerror(errno)));
  struct stat status {
  }, folder{};
  if (::fstat(file.number, &status) != 0 || !S_ISREG(status.st_mode))
    return fail(Code::malformed, format("{}: not a regular file", path));
  if (!is_own(status) || ::stat(parent_folder(path).c_str(), &folder) != 0 || !is_own(folder))
    return not_own(path);
  if (static_cast<uint64_t>(status.st_size) > most_bytes)
    return fail(Code::malformed, format("{}: larger than {} MiB", path, most_bytes >> 20));
  return std::optional<std::string>(read_all(file.number, most_bytes));
}

Result<void> write_user_tables(const std::string& path, std::string_view bytes) {
  const std::string folder = parent_folder(path);
  if (Result<void> made = create_folders(folder); !made) return std::move(made.error());
  struct stat status {};
  if (::stat(folder.c_str(), &status) == 0 && status.st_uid == ::geteuid())
    ::chmod(folder.c_str(), 0700);
  const int failed = replace_file(path, bytes, {0600, true});
  if (failed != 0)
    return fail(failed == EACCES || failed == EPERM ? Code::no_permission : Code::io,
                format("{}: {}", path, std::strerror(failed)));
  return {};
}

Result<bool> remove_user_tables(const std::string& path) {
  if (::unlink(path.c_str()) == 0) {
    remove_empty_folder(parent_folder(path));
    return true;
  }
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return fail(Code::io, format("{}: {}", path, std::strerror(errno)));
}

}  // namespace cufit::host
