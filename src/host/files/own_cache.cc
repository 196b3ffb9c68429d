// SPDX-License-Identifier: Apache-2.0
#include "host/files/own_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/format.h"
#include "host/files/kept_file.h"

namespace cufit::host {
namespace {

bool is_mine_alone(const struct stat& status) {
  return status.st_uid == ::geteuid() && (status.st_mode & 022) == 0;
}

}  // namespace

std::string own_cache_folder(const Host& host, std::string_view name) {
  const std::optional<std::string> cache = host.variable("XDG_CACHE_HOME");
  const std::optional<std::string> home = host.variable("HOME");
  // The specification says that a relative path is to be ignored.
  if (cache && starts_with(*cache, "/")) return *cache + "/cufit/" + std::string(name);
  if (home && starts_with(*home, "/")) return *home + "/.cache/cufit/" + std::string(name);
  return {};
}

bool is_own_folder(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && is_mine_alone(status);
}

bool make_own_folder(const std::string& path) {
  struct stat status {};
  for (size_t at = 1; at != std::string::npos; at = path.find('/', at + 1)) {
    const size_t end = path.find('/', at + 1);
    const std::string part = path.substr(0, end);
    if (::stat(part.c_str(), &status) != 0) {
      const std::string above = path.substr(0, std::max<size_t>(part.rfind('/'), 1));
      if (::stat(above.c_str(), &status) != 0 || status.st_uid != ::geteuid()) return false;
      if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return false;
    }
    if (end == std::string::npos) break;
  }
  return is_own_folder(path);
}

std::optional<std::string> read_own_file(const std::string& path, size_t most_bytes) {
  struct stat status {};
  const KeptFile file(path, O_NOFOLLOW);
  if (!file.status(status) || !S_ISREG(status.st_mode) || !is_mine_alone(status) ||
      (status.st_mode & 077) != 0)
    return std::nullopt;
  return file.read(most_bytes);
}

std::vector<std::pair<int64_t, std::string>> own_cache_files(
    const std::string& folder, const std::function<bool(std::string_view)>& is_own_name) {
  std::vector<std::pair<int64_t, std::string>> out;
  DIR* listing = ::opendir(folder.c_str());
  if (listing == nullptr) return out;
  while (const dirent* entry = ::readdir(listing)) {
    if (!is_own_name(entry->d_name)) continue;
    struct stat status {};
    std::string path = folder + "/" + entry->d_name;
    if (::lstat(path.c_str(), &status) == 0) out.emplace_back(status.st_mtime, std::move(path));
  }
  ::closedir(listing);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace cufit::host
