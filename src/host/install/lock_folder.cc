// SPDX-License-Identifier: Apache-2.0
#include "host/install/lock_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/format.h"
#include "base/sha256.h"
#include "host/files/atomic_write.h"
#include "host/install/environments.h"

namespace cufit::host {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_beside = "/.cufit.lock.partial";
constexpr size_t k_most_locked_bytes = 64u << 20;

std::string in_folder(const std::string& folder, const std::string& name) {
  return (folder.empty() ? "." : folder) + "/" + name;
}

Error folder_error(const char* what, const std::string& path) {
  return fail(errno == EACCES || errno == EPERM || errno == EROFS ? Code::no_permission : Code::io,
              format("`{}` cannot be {}: {}", path, what, std::strerror(errno)));
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// ".cufit-123.in", ".cufit-123-constraints.txt", "pylock.cu128-cufit-123.toml": what a run has
// beside the lock while it works.
bool is_leftover(std::string_view name) {
  // What replace_file() writes first: ".cufit-123.in.TRXwCz".
  if (name.size() > 7 && name[name.size() - 7] == '.' && starts_with(name, ".cufit-") &&
      name.find('.', 1) != name.size() - 7)
    name.remove_suffix(7);
  constexpr std::string_view k_own = ".cufit-", k_pylock = "pylock.", k_of = "-cufit-";
  const auto between = [&](size_t from, std::string_view end) {
    return ends_with(name, end) && name.size() > from + end.size() &&
           is_number(name.substr(from, name.size() - from - end.size()));
  };
  if (starts_with(name, k_own))
    return between(k_own.size(), ".in") || between(k_own.size(), "-constraints.txt");
  const size_t at = name.rfind(k_of);
  return starts_with(name, k_pylock) && at != name.npos && between(at + k_of.size(), ".toml");
}

bool has_sum(const Host& host, const std::string& path, const std::string& sum) {
  const Result<std::string> bytes = host.read_file(path, k_most_locked_bytes);
  return bytes && sha256(*bytes) == sum;
}

// One file that took another's place, and how to undo that.
struct Exchanged {
  std::string path, aside;
  bool was_there = false;
};

void undo(const std::vector<Exchanged>& done) {
  for (auto it = done.rbegin(); it != done.rend(); ++it) {
    if (it->was_there)
      (void)std::rename(it->aside.c_str(), it->path.c_str());
    else
      (void)::unlink(it->path.c_str());
  }
}

}  // namespace

Result<LockFolder> LockFolder::take(const std::string& folder, Hold hold) {
  const std::string path = folder.empty() ? "." : folder;
  LockFolder out(path, ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (out.file_ < 0) return folder_error("opened", path);
  const int how = hold == Hold::alone ? LOCK_EX : LOCK_SH;
  out.held_ = ::flock(out.file_, how | LOCK_NB) == 0;
  if (!out.held_ && errno == EWOULDBLOCK)
    return fail(Code::io,
                format("another cufit is making the lock in `{}`: wait for its end", path));
  return out;  // network filesystems lock no folder; two locks at once are rarer than these
}

LockFolder::LockFolder(LockFolder&& other) noexcept
    : folder_(std::move(other.folder_)), file_(other.file_), held_(other.held_) {
  other.file_ = -1;
}

LockFolder::~LockFolder() {
  if (file_ >= 0) ::close(file_);
}

void LockFolder::recover(const std::vector<LockedSum>& sums) const {
  if (!held_) return;  // it may be another's that is at work
  const RealHost host;
  const std::string beside = folder_ + k_beside;
  for (const LockedSum& one : sums) {
    const std::string path = in_folder(folder_, one.name);
    const std::string aside = beside + "/" + one.name + ".old";
    if (!has_sum(host, path, one.sha256) && has_sum(host, aside, one.sha256))
      (void)std::rename(aside.c_str(), path.c_str());
  }
  remove_tree(beside);
  std::error_code error;
  std::vector<std::string> left;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error))
    if (is_leftover(entry.path().filename().string())) left.push_back(entry.path().string());
  for (const std::string& path : left) remove_file(path);
}

Result<void> LockFolder::put(const std::vector<LockedFile>& files, const LockedFile& index,
                             const std::vector<std::string>& obsolete) const {
  const std::string beside = folder_ + k_beside;
  remove_tree(beside);
  if (::mkdir(beside.c_str(), 0777) != 0) return folder_error("made", beside);
  struct Removed {
    const std::string& folder;
    ~Removed() { remove_tree(folder); }
  } removed{beside};
  std::vector<LockedFile> all = files;
  all.push_back(index);
  // Whatever takes room is done before the first old file moves.
  for (const LockedFile& one : all)
    if (Result<void> done = write_synced(beside + "/" + one.name, one.bytes); !done) return done;
  std::vector<Exchanged> done;
  for (const LockedFile& one : all) {
    const std::string path = in_folder(folder_, one.name), fresh = beside + "/" + one.name;
    Exchanged step{path, fresh + ".old", false};
    const bool last = &one == &all.back();  // nothing has to be undone after it
    if (last)
      for (const std::string& name : obsolete) {
        Exchanged gone{in_folder(folder_, name), beside + "/" + name + ".old", true};
        if (std::rename(gone.path.c_str(), gone.aside.c_str()) == 0) done.push_back(gone);
      }
    if (!last) step.was_there = std::rename(path.c_str(), step.aside.c_str()) == 0;
    if (std::rename(fresh.c_str(), path.c_str()) != 0) {
      const Error error = folder_error("written", path);
      if (step.was_there) (void)std::rename(step.aside.c_str(), path.c_str());
      undo(done);
      return error;
    }
    done.push_back(std::move(step));
  }
  return {};  // what is obsolete goes with the folder beside
}

Result<void> recover_lock_folder(const std::string& folder, const std::vector<LockedSum>& sums) {
  struct stat status {};
  if (::lstat((folder + k_beside).c_str(), &status) != 0) return {};
  CUFIT_TRY(place, LockFolder::take(folder, LockFolder::Hold::alone));
  place.recover(sums);
  return {};
}

Result<std::string> read_locked(const Host& host, const std::string& folder,
                                const LockedSum& wanted, size_t most_bytes) {
  const std::string path = folder.empty() ? wanted.name : folder + "/" + wanted.name;
  Result<std::string> bytes = host.read_file(path, most_bytes);
  if (bytes && sha256(*bytes) == wanted.sha256) return bytes;
  const std::string beside = (folder.empty() ? "." : folder) + k_beside;
  Result<std::string> aside = host.read_file(beside + "/" + wanted.name + ".old", most_bytes);
  return aside && sha256(*aside) == wanted.sha256 ? aside : bytes;
}

}  // namespace cufit::host
