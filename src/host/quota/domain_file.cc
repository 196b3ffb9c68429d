// SPDX-License-Identifier: Apache-2.0
#include "host/quota/domain_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <vector>

#include "base/format.h"
#include "base/number.h"
#include "host/files/atomic_write.h"
#include "host/process/process_tree.h"
#include "host/process/spawn.h"

namespace cufit::host {
namespace {

constexpr std::string_view k_domain_end = ".domain";
constexpr std::time_t k_young_seconds = 60;  // a launch may be between its file and its program
constexpr size_t k_kept_recordings = 8;
constexpr size_t k_most_domain_bytes = 4096 + 4096 * 512;

Error refused(const std::string& path, const char* why) {
  return fail(Code::no_permission, format("`{}` {}", path, why));
}

Error io_error(const std::string& path, int number) {
  return fail(number == EACCES ? Code::no_permission : Code::io,
              format("`{}`: {}", path, std::strerror(number)));
}

// A folder that only this user may use. ENOENT where the one above it is missing.
Result<void> own_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return io_error(path, errno);
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return io_error(path, errno);
  if (!S_ISDIR(status.st_mode)) return refused(path, "is no folder");
  if (status.st_uid != ::geteuid()) return refused(path, "belongs to another user");
  if ((status.st_mode & 022) != 0) return refused(path, "may be written to by other users");
  return {};
}

bool is_folder_path(const char* path) {
  struct stat status {};
  return ::stat(path, &status) == 0 && S_ISDIR(status.st_mode) && ::access(path, W_OK) == 0;
}

std::string start_of(pid_t pid) {
  const std::string stat = read_small(format("/proc/{}/stat", pid));
  const size_t name = stat.rfind(')');
  if (name == std::string::npos) return {};
  const std::vector<std::string_view> fields = split(std::string_view(stat).substr(name + 1), ' ');
  constexpr size_t k_start = 20;  // field 22, counted from the state on, after a blank
  return fields.size() > k_start ? std::string(fields[k_start]) : std::string();
}

std::string this_launch() { return format("{}-{}", ::getpid(), start_of(::getpid())); }

bool launch_lives(const std::string& launch) {
  const size_t dash = launch.find('-');
  const std::optional<uint64_t> pid = parse_uint(std::string_view(launch).substr(0, dash));
  return pid && dash != std::string::npos && *pid < (uint64_t{1} << 31) &&
         start_of(static_cast<pid_t>(*pid)) == launch.substr(dash + 1);
}

bool is_young(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 &&
         std::time(nullptr) - status.st_mtime < k_young_seconds;
}

// A process of this user that was started with it; others' variables cannot be read.
bool is_in_variables(const std::string& path) {
  const std::string wanted = "CUFIT_DOMAIN=" + path + '\0';
  for (const std::string& name : names_in("/proc")) {
    if (!parse_uint(name)) continue;
    FileHandle file(::open(format("/proc/{}/environ", name).c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) continue;
    std::string text(size_t{1} << 20, '\0');
    size_t got = 0;
    for (ssize_t one = 0; got < text.size(); got += static_cast<size_t>(one)) {
      one = ::read(file.get(), text.data() + got, text.size() - got);
      if (one <= 0) break;
    }
    if (std::string_view(text).substr(0, got).find(wanted) != std::string_view::npos) return true;
  }
  return false;
}

bool is_locked(int file) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool is_used(const std::string& path, int file) { return is_locked(file) || is_in_variables(path); }

Result<FileHandle> open_own(const std::string& path) {
  FileHandle file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) return io_error(path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return io_error(path, errno);
  if (!S_ISREG(status.st_mode)) return refused(path, "is no regular file");
  if (status.st_uid != ::geteuid()) return refused(path, "belongs to another user");
  if ((status.st_mode & 077) != 0) return refused(path, "may be used by other users");
  return file;
}

Result<formats::QuotaDomain> read_domain(int file) {
  std::string bytes(k_most_domain_bytes, '\0');
  const ssize_t got = ::pread(file, bytes.data(), bytes.size(), 0);
  if (got < 0) return fail(Code::io, std::strerror(errno));
  bytes.resize(static_cast<size_t>(got));
  return formats::parse_quota_domain(bytes);
}

// One launch at a time looks at a shared file and makes it.
Result<FileHandle> folder_lock(const std::string& folder) {
  const std::string path = folder + "/lock";
  FileHandle file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return io_error(path, errno);
  while (::flock(file.get(), LOCK_EX) != 0)
    if (errno != EINTR) return io_error(path, errno);
  return file;
}

void remove_recordings(const std::string& folder) {
  std::vector<std::pair<std::time_t, std::string>> old;
  for (const std::string& name : names_in(folder)) {
    struct stat status {};
    const std::string path = folder + "/" + name;
    if (name[0] == '.' || launch_lives(name) || ::lstat(path.c_str(), &status) != 0) continue;
    old.emplace_back(status.st_mtime, path);
  }
  std::sort(old.begin(), old.end());
  for (size_t i = 0; i + k_kept_recordings < old.size(); ++i) {
    for (const std::string& name : names_in(old[i].second))
      if (name[0] != '.') ::unlink((old[i].second + "/" + name).c_str());
    ::rmdir(old[i].second.c_str());
  }
}

}  // namespace

Result<std::string> quota_folder(const Host& variables) {
  const std::string user = std::to_string(::geteuid());
  const std::string runtime = variables.variable("XDG_RUNTIME_DIR").value_or("");
  std::string path = "/tmp/cufit-" + user;
  if (starts_with(runtime, "/") && is_folder_path(runtime.c_str())) {
    path = runtime + "/cufit";
  } else if (is_folder_path("/dev/shm")) {
    path = "/dev/shm/cufit-" + user;
  }
  if (Result<void> made = own_folder(path); !made) return made.error();
  return path;
}

Result<DomainFile> open_domain_file(const std::string& folder, const std::string& share,
                                    const formats::QuotaDomain& wanted) {
  CUFIT_TRY(bytes, formats::make_quota_domain(wanted));
  CUFIT_TRY(lock, folder_lock(folder));
  DomainFile out;
  out.domain = wanted;
  out.path = format("{}/{}{}", folder, share.empty() ? "run-" + this_launch() : "share-" + share,
                    k_domain_end);
  struct stat there {};
  if (::lstat(out.path.c_str(), &there) == 0) {
    CUFIT_TRY(file, open_own(out.path));
    if (!share.empty() && is_used(out.path, file.get())) {
      const Result<formats::QuotaDomain> found = read_domain(file.get());
      if (!found) return fail(Code::malformed, format("`{}`: {}", out.path, found.error().text()));
      out.joined = true;
      out.domain = *found;
      // From now on it is young: no other start removes it before the program runs.
      (void)::futimens(file.get(), nullptr);
      return out;
    }
  }
  ReplaceOptions options;
  options.mode = 0600;
  if (const int number = replace_file(out.path, bytes, options)) return io_error(out.path, number);
  return out;
}

void remove_unused_domains(const std::string& folder) {
  const Result<FileHandle> lock = folder_lock(folder);
  if (!lock) return;
  for (const std::string& name : names_in(folder)) {
    const std::string path = folder + "/" + name;
    if (!ends_with(name, k_domain_end) || is_young(path)) continue;
    const Result<FileHandle> file = open_own(path);
    if (file && !is_used(path, file->get())) ::unlink(path.c_str());
  }
  remove_recordings(folder + "/rings");
}

Result<std::string> make_ring_folder(const std::string& folder) {
  const std::string above = folder + "/rings", path = above + "/" + this_launch();
  for (const std::string& each : {above, path})
    if (Result<void> made = own_folder(each); !made) return made.error();
  return path;
}

}  // namespace cufit::host
