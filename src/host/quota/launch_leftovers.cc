// SPDX-License-Identifier: Apache-2.0
#include "host/quota/launch_leftovers.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/format.h"
#include "host/process/process_tree.h"
#include "host/process/spawn.h"
#include "host/quota/mps_server.h"
#include "host/quota/quota_folder.h"

namespace cufit::host {
namespace {

constexpr size_t k_kept_recordings = 8;
constexpr uint64_t k_kept_recording_bytes = 16u << 20;

struct Recording {
  std::time_t time = 0;
  std::string path;
  uint64_t bytes = 0;
};

uint64_t bytes_in(const std::string& folder) {
  uint64_t out = 0;
  for (const std::string& name : names_in(folder)) {
    struct stat status {};
    if (::lstat((folder + "/" + name).c_str(), &status) == 0 && S_ISREG(status.st_mode))
      out += static_cast<uint64_t>(status.st_size);
  }
  return out;
}

bool is_over(const std::string& name) {
  const LaunchState state = launch_state(name);
  return state == LaunchState::gone || state == LaunchState::no_launch;
}

}  // namespace

void remove_old_recordings(const std::string& folder) {
  std::vector<Recording> old;
  for (const std::string& name : names_in(folder)) {
    struct stat status {};
    const std::string path = folder + "/" + name;
    if (name[0] == '.' || !is_over(name) || ::lstat(path.c_str(), &status) != 0) continue;
    if (::rmdir(path.c_str()) != 0) old.push_back({status.st_mtime, path, bytes_in(path)});
  }
  std::sort(old.begin(), old.end(),
            [](const Recording& a, const Recording& b) { return a.time > b.time; });
  uint64_t bytes = 0;
  std::error_code ignored;
  for (size_t i = 0; i < old.size(); ++i) {
    bytes += old[i].bytes;
    // The newest stays, however large: somebody may want to know why it died.
    if (i >= k_kept_recordings || (i > 0 && bytes > k_kept_recording_bytes))
      std::filesystem::remove_all(old[i].path, ignored);
  }
}

void remove_old_mps(const std::string& folder) {
  for (const std::string& name : names_in(folder)) {
    if (!starts_with(name, k_mps_folder) || !is_over(name.substr(k_mps_folder.size()))) continue;
    const std::string path = folder + "/" + name;
    // It takes seconds: one launch does it, and no other waits.
    const FileHandle claim(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (claim.get() >= 0 && ::flock(claim.get(), LOCK_EX | LOCK_NB) == 0) stop_mps({path});
  }
}

}  // namespace cufit::host
