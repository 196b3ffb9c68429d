// SPDX-License-Identifier: Apache-2.0
#include "host/quota/domain_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <map>
#include <set>

#include "base/abi/quota_domain.h"
#include "base/format.h"
#include "host/files/atomic_write.h"
#include "host/process/process_tree.h"
#include "host/quota/launch_leftovers.h"
#include "host/quota/quota_folder.h"

namespace cufit::host {
namespace {

constexpr std::string_view k_domain_end = ".domain", k_of_launch = "run-", k_of_share = "share-";
constexpr std::string_view k_member = ".by-";
constexpr int k_lock_tries = 500, k_sweep_tries = 5;
constexpr useconds_t k_lock_pause = 20000;
constexpr std::time_t k_young_seconds = 60;
constexpr std::time_t k_hour_seconds = 3600;
constexpr std::time_t k_week_seconds = 7 * 24 * 3600;
constexpr size_t k_most_domain_bytes =
    CUFIT_DOMAIN_HEADER_BYTES + size_t{CUFIT_DOMAIN_MAX_SLOTS} * CUFIT_DOMAIN_SLOT_BYTES;
constexpr const char* k_domain_variable = "CUFIT_DOMAIN";
// While a launcher becomes its program its lock is gone and its variables are not there yet: microseconds.
constexpr useconds_t k_between = 5000;

Error refused(const std::string& path, const char* why) {
  return fail(Code::no_permission, format("`{}` {}", path, why));
}

Error io_error(const std::string& path, int number) {
  if (number == ENOSPC || number == EDQUOT)
    return fail(Code::io, format("`{}`: No space left on device; CUFIT_RUN_DIR can name another "
                                 "folder of yours",
                                 path));
  return fail(number == EACCES ? Code::no_permission : Code::io,
              format("`{}`: {}", path, std::strerror(number)));
}

std::time_t age_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? std::time(nullptr) - status.st_mtime : 0;
}

bool is_locked(int file) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;  // from 0 to the end
  return ::fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool is_used(const std::string& path, int file) {
  if (is_locked(file) || values_in_processes(k_domain_variable).count(path) != 0) return true;
  ::usleep(k_between);
  return is_locked(file) || values_in_processes(k_domain_variable).count(path) != 0;
}

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

// One launch at a time looks at a file and makes it. Who holds it for longer has been stopped (Ctrl-Z).
Result<FileHandle> folder_lock(const std::string& folder, int most_tries = k_lock_tries) {
  const std::string path = folder + "/lock";
  FileHandle file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return io_error(path, errno);
  for (int tries = 0; ::flock(file.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK && errno != EINTR) return io_error(path, errno);
    if (tries == most_tries)
      return fail(Code::io, format("`{}` is held by another start of cufit for more than 10 s; is "
                                   "one of them stopped?",
                                   path));
    ::usleep(k_lock_pause);
  }
  return file;
}

// Beside a shared domain, an empty file of each launch that has it: a program that has not come to CUDA yet holds no lock, and
// its variables may be out of sight.
std::string member_path(const std::string& domain, const std::string& launch) {
  return domain + std::string(k_member) + launch;
}

// Whether another launch that has the domain may live; the files of those that are gone go.
bool has_members(const std::string& domain) {
  const size_t slash = domain.rfind('/');
  const std::string folder = domain.substr(0, slash);
  const std::string start = domain.substr(slash + 1) + std::string(k_member);
  bool any = false;
  for (const std::string& name : names_in(folder)) {
    if (!starts_with(name, start) || name.substr(start.size()) == this_launch()) continue;
    const std::string path = folder + "/" + name;
    const LaunchState state = launch_state(name.substr(start.size()));
    if (state == LaunchState::lives ||
        (state == LaunchState::elsewhere && age_of(path) < k_week_seconds))
      any = true;
    else
      remove_file(path);
  }
  return any;
}

// An errno; 0 = written.
int add_member(const std::string& domain) {
  ReplaceOptions options;
  options.mode = 0600;
  return replace_file(member_path(domain, this_launch()), "", options);
}

// Until this process is another program, or has closed the file.
void hold_for_launch(DomainFile& domain, FileHandle file) {
  struct flock lock {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = CUFIT_DOMAIN_LAUNCH_LOCK;
  lock.l_len = 1;
  (void)::fcntl(file.get(), F_SETLK, &lock);
  domain.launching = std::move(file);
}

// May it go, as far as its name and its age tell?
bool is_leftover(const std::string& name, const std::string& path) {
  if (starts_with(name, k_of_share)) return age_of(path) >= k_young_seconds && !has_members(path);
  const size_t begin = k_of_launch.size();
  switch (launch_state(name.substr(begin, name.size() - begin - k_domain_end.size()))) {
    case LaunchState::lives:
      return false;
    case LaunchState::elsewhere:
      return age_of(path) >= k_week_seconds;
    case LaunchState::no_launch:
      return age_of(path) >= k_young_seconds;
    case LaunchState::gone:
      break;
  }
  return true;
}

// What may go as far as names, ages and locks tell.
std::vector<std::string> unused_domains(const std::string& folder) {
  std::vector<std::string> out;
  for (const std::string& name : names_in(folder)) {
    const std::string path = folder + "/" + name;
    // Of a start that was killed between writing and renaming.
    if (contains(name, ".domain.") && !contains(name, k_member) && age_of(path) >= k_hour_seconds)
      remove_file(path);
    if (!ends_with(name, k_domain_end) || !is_leftover(name, path)) continue;
    const Result<FileHandle> file = open_own(path);
    if (file && !is_locked(file->get())) out.push_back(path);
  }
  return out;
}

// `before`: the domains in variables of processes, before a pause.
void remove_candidates(const std::string& folder, const std::vector<std::string>& paths,
                       const std::set<std::string>& before) {
  // Another launch that has it may sweep just now, or has been stopped.
  const Result<FileHandle> lock = folder_lock(folder, k_sweep_tries);
  if (!lock) return;
  const std::set<std::string> now = values_in_processes(k_domain_variable);
  for (const std::string& path : paths) {
    if (before.count(path) != 0 || now.count(path) != 0) continue;
    if (!is_leftover(path.substr(folder.size() + 1), path)) continue;
    const Result<FileHandle> file = open_own(path);
    if (file && !is_locked(file->get())) remove_file(path);
  }
}

}  // namespace

Result<formats::QuotaDomain> read_domain(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return fail(Code::io, std::strerror(errno));
  if (static_cast<uint64_t>(status.st_size) > k_most_domain_bytes)
    return fail(Code::malformed,
                format("{} bytes are more than a quota domain has", status.st_size));
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(file, &bytes[done], bytes.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(Code::io, std::strerror(errno));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return formats::parse_quota_domain(bytes);
}

bool is_domain_used(const std::string& path) {
  const Result<FileHandle> file = open_own(path);
  return file && (has_members(path) || is_used(path, file->get()));
}

std::string share_domain_path(const Host& variables, const std::string& share) {
  const Result<std::string> folder = quota_folder(variables);
  return folder && !share.empty() ? format("{}/{}{}{}", *folder, k_of_share, share, k_domain_end)
                                  : std::string();
}

Result<DomainFile> open_domain_file(const std::string& folder, const std::string& share,
                                    const formats::QuotaDomain& wanted) {
  CUFIT_TRY(bytes, formats::make_quota_domain(wanted));
  CUFIT_TRY(lock, folder_lock(folder));
  DomainFile out;
  out.domain = wanted;
  out.path = folder + "/";
  out.path +=
      share.empty() ? std::string(k_of_launch) + this_launch() : std::string(k_of_share) + share;
  out.path += k_domain_end;
  struct stat there {};
  if (::lstat(out.path.c_str(), &there) == 0) {
    CUFIT_TRY(file, open_own(out.path));
    if (!share.empty() && (has_members(out.path) || is_used(out.path, file.get()))) {
      const Result<formats::QuotaDomain> found = read_domain(file.get());
      if (!found)
        return fail(Code::malformed,
                    format("`{}` is in use and damaged ({}): choose another name for `--share`, or "
                           "end its programs (`cufit quota status`)",
                           out.path, found.error().what));
      if (const int number = add_member(out.path)) return io_error(out.path, number);
      out.joined = true;
      out.domain = *found;
      hold_for_launch(out, std::move(file));
      return out;
    }
  }
  ReplaceOptions options;
  options.mode = 0600;
  if (const int number = replace_file(out.path, bytes, options)) return io_error(out.path, number);
  Result<FileHandle> file = open_own(out.path);
  if (file && !share.empty())
    if (const int number = add_member(out.path)) file = io_error(out.path, number);
  if (!file) {
    remove_file(out.path);
    return file.error();
  }
  hold_for_launch(out, std::move(*file));
  return out;
}

void leave_domain(DomainFile& domain) {
  domain.launching.reset();
  const std::string folder = domain.path.substr(0, domain.path.rfind('/'));
  const Result<FileHandle> lock = folder_lock(folder);
  if (!lock) return;
  remove_file(member_path(domain.path, this_launch()));
  const Result<FileHandle> file = open_own(domain.path);
  if (file && !has_members(domain.path) && !is_used(domain.path, file->get()))
    remove_file(domain.path);
}

void remove_unused_domains(const std::vector<std::string>& folders) {
  std::vector<std::string> own;
  for (const std::string& folder : folders)
    if (judge_own_folder(folder)) own.push_back(folder);
  std::map<std::string, std::vector<std::string>> candidates;  // by folder
  for (const std::string& folder : own)
    if (std::vector<std::string> found = unused_domains(folder); !found.empty())
      candidates[folder] = std::move(found);
  if (!candidates.empty()) {
    // As is_used(), for all of them: the first look takes no lock, and a launch that comes after it leaves a file of a member.
    const std::set<std::string> before = values_in_processes(k_domain_variable);
    ::usleep(k_between);
    for (const auto& [folder, paths] : candidates) remove_candidates(folder, paths, before);
  }
  for (const std::string& folder : own) {
    remove_old_recordings(folder + "/rings");
    remove_old_mps(folder);  // seconds, without the lock
  }
}

Result<std::string> make_ring_folder(const std::string& folder) {
  const std::string above = folder + "/rings", path = above + "/" + this_launch();
  for (const std::string& each : {above, path})
    if (Result<void> made = own_folder(each); !made) return made.error();
  return path;
}

}  // namespace cufit::host
