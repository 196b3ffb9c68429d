// SPDX-License-Identifier: Apache-2.0
#include "host/install/environments.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/format.h"
#include "host/files/host.h"
#include "host/files/atomic_write.h"

namespace cufit::host {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_partial = ".partial-";
constexpr const char* k_previous = ".previous-";

Error environment_error(const std::string& what, const std::string& path) {
  return fail(errno == EACCES || errno == EPERM ? Code::no_permission : Code::io,
              format("`{}` cannot be {}: {}", path, what, std::strerror(errno)));
}

}  // namespace

bool is_class_name(const std::string& name) {
  if (name.empty() || name.size() > 64 || name[0] == '.' || name[0] == '-') return false;
  for (const char c : name) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '+' || c == '.';
    if (!good) return false;
  }
  return true;
}

Result<EnvironmentPaths> environment_paths(const std::string& lock_folder,
                                           const std::string& name) {
  if (!is_class_name(name))
    return fail(Code::malformed, format("`{}` cannot be the name of an environment", name));
  std::error_code error;
  const fs::path real = fs::canonical(lock_folder, error);
  if (error) return fail(Code::not_found, format("`{}`: {}", lock_folder, error.message()));
  EnvironmentPaths out;
  out.envs = (real / ".cufit/envs").string();
  out.folder = out.envs + "/" + name;
  out.record = out.folder + ".json";
  out.partial = format("{}/.{}{}{}", out.envs, name, k_partial, getpid());
  return out;
}

Result<EnvironmentsLock> EnvironmentsLock::take(const std::string& envs) {
  std::error_code error;
  fs::create_directories(envs, error);
  if (error) return fail(Code::io, format("`{}` cannot be made: {}", envs, error.message()));
  // Environments are no part of a project's history.
  const std::string ignore = fs::path(envs).parent_path().string() + "/.gitignore";
  if (!fs::exists(ignore, error)) std::ofstream(ignore) << "*\n";
  const std::string path = envs + "/.lock";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return environment_error("opened", path);
  EnvironmentsLock out(file);
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return out;
  if (errno == EWOULDBLOCK)
    return fail(Code::io,
                format("another cufit is making environments in `{}`: wait for its end", envs));
  // Some network filesystems know no locks; two creates at once are rarer than these.
  if (errno == ENOLCK || errno == EOPNOTSUPP || errno == EINVAL) return out;
  return environment_error("locked", path);
}

EnvironmentsLock::EnvironmentsLock(EnvironmentsLock&& other) noexcept : file_(other.file_) {
  other.file_ = -1;
}

EnvironmentsLock::~EnvironmentsLock() {
  if (file_ >= 0) close(file_);
}

void remove_tree(const std::string& folder) {
  std::error_code error;
  fs::remove_all(folder, error);  // does not follow links
}

size_t remove_leftovers(const std::string& envs) {
  std::vector<std::string> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(envs, error)) {
    const std::string name = entry.path().filename().string();
    if (starts_with(name, ".") && (contains(name, k_partial) || contains(name, k_previous)))
      found.push_back(entry.path().string());
  }
  for (const std::string& path : found) {
    // A create that was killed between the two renames: what was there before comes back.
    const size_t at = path.rfind(k_previous);
    if (at != std::string::npos) {
      const size_t name = path.rfind('/') + 2;
      const std::string back = envs + "/" + path.substr(name, at - name);
      if (!fs::exists(fs::symlink_status(back, error)) && rename(path.c_str(), back.c_str()) == 0)
        continue;
    }
    remove_tree(path);
  }
  return found.size();
}

Result<void> swap_in(const EnvironmentPaths& paths, const formats::EnvRecord& record) {
  // Under a name that remove_leftovers() knows, until it takes the old one's place.
  const std::string record_beside = paths.partial + ".json";
  if (Result<void> done = write_synced(record_beside, formats::env_record_text(record)); !done)
    return done;
  struct Removed {
    const std::string& path;
    ~Removed() { remove_file(path); }
  } removed{record_beside};
  const std::string name = paths.folder.substr(paths.folder.rfind('/') + 1);
  const std::string previous = format("{}/.{}{}{}", paths.envs, name, k_previous, getpid());
  struct stat status {};
  const bool replaces = lstat(paths.folder.c_str(), &status) == 0;
  if (replaces && rename(paths.folder.c_str(), previous.c_str()) != 0)
    return environment_error("moved aside", paths.folder);
  const auto put_back = [&] {
    if (replaces) (void)rename(previous.c_str(), paths.folder.c_str());
  };
  if (rename(paths.partial.c_str(), paths.folder.c_str()) != 0) {
    const Error error = environment_error("moved into place", paths.partial);
    put_back();
    return error;
  }
  if (rename(record_beside.c_str(), paths.record.c_str()) != 0) {
    const Error error = environment_error("written", paths.record);
    (void)rename(paths.folder.c_str(), paths.partial.c_str());
    put_back();
    return error;
  }
  if (replaces) remove_tree(previous);
  return {};
}

Result<formats::EnvRecord> read_record(const EnvironmentPaths& paths) {
  Result<std::string> text = RealHost().read_file(paths.record, 64u << 10);
  if (!text && text.error().code == Code::not_found)
    return fail(Code::not_found, "no record of cufit");
  if (!text) return text.error();
  return formats::parse_env_record(*text, paths.record);
}

Result<void> remove_environment(const EnvironmentPaths& paths) {
  if (const auto record = read_record(paths); !record) {
    const std::string why = record.error().text();
    return record.error().code == Code::not_found
               ? fail(Code::usage, format("`{}` is left alone: {}", paths.folder, why))
               : fail(Code::malformed,
                      format("`{}` is left alone: {}; `cufit env create --force` makes both anew, "
                             "or remove them by hand",
                             paths.folder, why));
  }
  std::error_code error;
  const fs::file_status status = fs::symlink_status(paths.folder, error);
  if (fs::is_symlink(status))
    return fail(Code::usage, format("`{}` is left alone: it is a link", paths.folder));
  if (fs::exists(status)) {
    // Out of sight first: an interrupted removal leaves no half environment that looks whole.
    if (rename(paths.folder.c_str(), paths.partial.c_str()) != 0)
      return environment_error("moved aside", paths.folder);
    fs::remove_all(paths.partial, error);
    if (error)
      return fail(Code::io, format("`{}` cannot be removed: {}", paths.partial, error.message()));
  }
  if (unlink(paths.record.c_str()) != 0) return environment_error("removed", paths.record);
  return {};
}

Usage usage_of(const std::string& folder) {
  Usage out;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    struct stat status {};
    if (lstat(it->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    ++out.files;
    out.bytes += static_cast<uint64_t>(status.st_size);
    if (status.st_nlink > 1) out.shared_bytes += static_cast<uint64_t>(status.st_size);
  }
  return out;
}

std::optional<Space> space_at(std::string path) {
  struct statvfs space {};
  struct stat status {};
  while (statvfs(path.c_str(), &space) != 0 || stat(path.c_str(), &status) != 0) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos || path.size() <= 1) return std::nullopt;
    path.resize(slash == 0 ? 1 : slash);
  }
  return Space{uint64_t{space.f_bavail} * space.f_frsize, status.st_dev};
}

std::string utc_text(std::time_t at) {
  std::tm parts{};
  gmtime_r(&at, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace cufit::host
