// SPDX-License-Identifier: Apache-2.0
#include "host/quota/quota_folder.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/number.h"
#include "host/process/process_tree.h"

namespace cufit::host {
namespace {

// The guard keeps 511 characters of a path (guard/settings.h); the names below the folder have fewer than 112.
constexpr size_t k_most_path = 400;

// Of sudo it may be another user's, who then could not use what is made there.
bool is_own_runtime(const std::string& path) {
  struct stat status {};
  return starts_with(path, "/") && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() && ::access(path.c_str(), W_OK) == 0;
}

bool is_shared_memory(const char* path) {
  struct stat status {};
  return ::stat(path, &status) == 0 && S_ISDIR(status.st_mode) && ::access(path, W_OK) == 0;
}

// A ticket has 8 KiB and a domain 260 KiB; loaders of data fill /dev/shm of a container, which has 64 MiB.
constexpr uint64_t k_least_room_bytes = 512u << 10;

bool is_full(const std::string& path) {
  struct statvfs system {};
  return ::statvfs(path.c_str(), &system) == 0 &&
         uint64_t{system.f_bavail} * system.f_frsize < k_least_room_bytes;
}

// Another place would be a second queue and a second limit, and nobody would know why.
std::optional<Error> taken_by_another(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || status.st_uid == ::geteuid()) return std::nullopt;
  return fail(Code::no_permission,
              format("`{}` belongs to user {}: have it removed, or name a folder of yours by "
                     "CUFIT_RUN_DIR",
                     path, status.st_uid));
}

Result<std::string> named_folder(const std::string& path) {
  if (!starts_with(path, "/"))
    return fail(Code::usage, format("CUFIT_RUN_DIR is no path from the root: `{}`", path));
  if (path.size() >= k_most_path)
    return fail(Code::usage, format("CUFIT_RUN_DIR is too long a path: `{}`", path));
  if (std::optional<Error> taken = taken_by_another(path)) return std::move(*taken);
  if (Result<void> made = own_folder(path); !made) return made.error();
  return path;
}

Error folder_error(const std::string& path, int number) {
  return fail(number == EACCES ? Code::no_permission : Code::io,
              format("`{}`: {}", path, std::strerror(number)));
}

}  // namespace

Result<void> own_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return folder_error(path, errno);
  return judge_own_folder(path);
}

Result<void> judge_own_folder(const std::string& path) {
  const auto refused = [&](const char* why) {
    return fail(Code::no_permission, format("`{}` {}", path, why));
  };
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return folder_error(path, errno);
  if (!S_ISDIR(status.st_mode)) return refused("is no folder");
  if (status.st_uid != ::geteuid()) return refused("belongs to another user");
  if ((status.st_mode & 022) != 0) return refused("may be written to by other users");
  return {};
}

std::vector<std::string> quota_folders(const Host& variables) {
  const std::string user = std::to_string(::geteuid());
  std::vector<std::string> out;
  const std::string named = variables.variable("CUFIT_RUN_DIR").value_or("");
  if (starts_with(named, "/") && named.size() < k_most_path) out.push_back(named);
  if (is_shared_memory("/dev/shm")) out.push_back("/dev/shm/cufit-" + user);
  out.push_back("/tmp/cufit-" + user);
  const std::string runtime = variables.variable("XDG_RUNTIME_DIR").value_or("");
  if (is_own_runtime(runtime) && runtime.size() < k_most_path) out.push_back(runtime + "/cufit");
  return out;
}

Result<std::string> quota_folder(const Host& variables) {
  if (const std::string named = variables.variable("CUFIT_RUN_DIR").value_or(""); !named.empty())
    return named_folder(named);
  Error last;
  std::vector<std::string> reasons;
  for (const std::string& path : quota_folders(variables)) {
    if (std::optional<Error> taken = taken_by_another(path)) return std::move(*taken);
    const Result<void> made = own_folder(path);
    if (made && !is_full(path)) return path;
    last.code = made ? Code::io : made.error().code;
    reasons.push_back(made ? format("`{}`: No space left on device", path) : made.error().what);
  }
  return fail(last.code, join(reasons, "; "));
}

std::string this_launch() {
  return format("{}-{}-{}", ::getpid(), process_state(0).start_ticks, pid_namespace());
}

LaunchState launch_state(const std::string& launch) {
  const std::vector<std::string_view> parts = split(launch, '-');
  if (parts.size() != 3) return LaunchState::no_launch;
  const std::optional<uint64_t> pid = parse_uint(parts[0]), start = parse_uint(parts[1]),
                                space = parse_uint(parts[2]);
  if (!pid || !start || !space || *pid == 0 || *pid >= (uint64_t{1} << 31))
    return LaunchState::no_launch;
  if (*space != pid_namespace()) return LaunchState::elsewhere;
  const ProcessState process = process_state(static_cast<pid_t>(*pid));
  return process.state != 0 && process.start_ticks == *start ? LaunchState::lives
                                                             : LaunchState::gone;
}

}  // namespace cufit::host
