// SPDX-License-Identifier: Apache-2.0
#include "host/files/prediction_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/format.h"
#include "base/sha256.h"
#include "host/files/atomic_write.h"

namespace cufit::host {
namespace {

constexpr size_t k_most_hashed_bytes = size_t{1} << 20;

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

bool is_mine_alone(const struct stat& status) {
  return status.st_uid == ::geteuid() && (status.st_mode & 022) == 0;
}

// Folders of others are neither made in nor written to: root with a user's HOME keeps nothing.
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
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && is_mine_alone(status);
}

// Of file_of(): somebody else's files in the folder stay.
bool is_prediction_name(std::string_view name) {
  return name.size() == 64 + 5 && ends_with(name, ".json") &&
         name.substr(0, 64).find_first_not_of("0123456789abcdef") == name.npos;
}

void drop_oldest(const std::string& folder, size_t keep) {
  DIR* listing = ::opendir(folder.c_str());
  if (listing == nullptr) return;
  std::vector<std::pair<int64_t, std::string>> files;
  while (const dirent* entry = ::readdir(listing)) {
    if (!is_prediction_name(entry->d_name)) continue;
    struct stat status {};
    const std::string path = folder + "/" + entry->d_name;
    if (::lstat(path.c_str(), &status) == 0) files.emplace_back(status.st_mtime, path);
  }
  ::closedir(listing);
  if (files.size() <= keep) return;
  std::sort(files.begin(), files.end());
  for (size_t i = 0; i < files.size() - keep; ++i) ::unlink(files[i].second.c_str());
}

}  // namespace

PredictionCache::PredictionCache(const Host& host) {
  const std::optional<std::string> cache = host.variable("XDG_CACHE_HOME");
  const std::optional<std::string> home = host.variable("HOME");
  // The specification says that a relative path is to be ignored.
  if (cache && starts_with(*cache, "/")) {
    folder_ = *cache + "/cufit/fit";
  } else if (home && starts_with(*home, "/")) {
    folder_ = *home + "/.cache/cufit/fit";
  }
}

std::string PredictionCache::file_of(const std::string& key) const {
  return folder_ + "/" + sha256(key) + ".json";
}

std::optional<std::string> PredictionCache::load(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  struct stat status {};
  if (::lstat(folder_.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || !is_mine_alone(status))
    return std::nullopt;
  const KeptFile file(file_of(key), O_NOFOLLOW);
  if (!file.status(status) || !S_ISREG(status.st_mode) || !is_mine_alone(status) ||
      (status.st_mode & 077) != 0)
    return std::nullopt;
  return file.read(k_most_prediction_bytes);
}

bool PredictionCache::save(const std::string& key, std::string_view text) const {
  if (folder_.empty() || text.size() > k_most_prediction_bytes || !make_own_folder(folder_))
    return false;
  drop_oldest(folder_, k_most_predictions - 1);
  return replace_file(file_of(key), text, {.mode = 0600, .sync = false}) == 0;
}

std::string file_mark(const std::string& path) {
  const KeptFile file(path, 0);
  struct stat status {};
  if (!file.status(status) || !S_ISREG(status.st_mode)) return {};
  if (static_cast<uint64_t>(status.st_size) > k_most_hashed_bytes)
    return format("size:{} time:{}.{}", status.st_size, status.st_mtim.tv_sec,
                  status.st_mtim.tv_nsec);
  const std::optional<std::string> bytes = file.read(k_most_hashed_bytes);
  return bytes ? "sha256:" + sha256(*bytes) : std::string();
}

int64_t time_of_files() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now.tv_sec;
}

bool is_changed_since(const std::string& path, int64_t seconds) {
  struct stat status {};
  return ::stat(path.c_str(), &status) != 0 || status.st_mtime >= seconds ||
         status.st_ctime >= seconds;
}

}  // namespace cufit::host
