// SPDX-License-Identifier: Apache-2.0
#include "host/quota/wait_tickets.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <map>

#include "base/format.h"
#include "base/number.h"
#include "host/files/rlimit_fsize_guard.h"
#include "host/process/process_tree.h"
#include "host/process/signal_pause.h"
#include "host/quota/quota_folder.h"

namespace cufit::host {
namespace {

using formats::WaitTicket;

constexpr std::string_view k_ticket_end = ".ticket";
constexpr size_t k_number_digits = 20;
// Of a folder that others write to: more names are not looked at, nor more tickets of one user.
constexpr size_t k_most_queue_names = 16384;
constexpr size_t k_most_tickets_of_user = 512;
// Whether a ticket of another boot or pid namespace is dead cannot be seen; after this time it is.
constexpr std::time_t k_ticket_age_seconds = 7 * 24 * 3600;
constexpr int k_least_kept_file = 200;  // a number that no program expects to be free

Error queue_error(const std::string& path, int number) {
  return fail(number == EACCES || number == EPERM ? Code::no_permission : Code::io,
              format("`{}`: {}", path, std::strerror(number)));
}

// Read once: it is asked of each ticket.
const std::string& boot_id() {
  static const std::string id(trim(read_small("/proc/sys/kernel/random/boot_id")));
  return id;
}

uint64_t boot_nanoseconds() { return static_cast<uint64_t>(running_seconds() * 1e9); }

// Who holds the lock of a ticket: nullopt = nobody; 0: somebody of another pid namespace.
std::optional<uint32_t> ticket_holder(int file) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  // A reader's lock is none: anybody can take one.
  if (::fcntl(file, F_GETLK, &lock) != 0 || lock.l_type != F_WRLCK) return std::nullopt;
  return static_cast<uint32_t>(std::max<pid_t>(lock.l_pid, 0));
}

// Of that user, for a ticket could name anybody's process; neither ended nor another one of its number.
bool is_process_of(const WaitTicket& ticket, uint32_t owner) {
  struct stat status {};
  const ProcessState process = process_state(static_cast<pid_t>(ticket.pid));
  return ticket.pid != 0 && process.state != 0 && process.state != 'Z' && process.state != 'X' &&
         process.start_ticks == ticket.start_ticks &&
         ::stat(format("/proc/{}", ticket.pid).c_str(), &status) == 0 && status.st_uid == owner;
}

std::string ticket_name(const WaitTicket& ticket) {
  return format("{:020}-{}{}", ticket.number, ticket.pid, k_ticket_end);
}

std::vector<std::string> ticket_names(const std::string& folder) {
  std::vector<std::string> out;
  DIR* listing = ::opendir(folder.c_str());
  if (listing == nullptr) return out;
  while (const dirent* entry = ::readdir(listing)) {
    if (!ends_with(entry->d_name, k_ticket_end)) continue;
    out.emplace_back(entry->d_name);
    if (out.size() >= k_most_queue_names) break;
  }
  ::closedir(listing);
  std::sort(out.begin(), out.end());
  return out;
}

// `CUFIT_QUEUE`: others may add tickets, and take none away.
Result<void> judge_shared_folder(const std::string& path) {
  struct stat status {};
  if (!starts_with(path, "/"))
    return fail(Code::usage, format("CUFIT_QUEUE is no path from the root: `{}`", path));
  if (::stat(path.c_str(), &status) != 0) return queue_error(path, errno);
  if (!S_ISDIR(status.st_mode)) return fail(Code::usage, format("`{}` is no folder", path));
  if ((status.st_mode & 022) != 0 && (status.st_mode & S_ISVTX) == 0)
    return fail(Code::no_permission,
                format("`{}`: others may remove what is in it; its owner makes it a queue for all "
                       "by `chmod 1777`",
                       path));
  return {};
}

}  // namespace

Result<WaitQueue> WaitQueue::open(const Host& variables) {
  WaitQueue out;  // of CUFIT_QUEUE, else of this user alone
  const std::string shared = variables.variable("CUFIT_QUEUE").value_or("");
  out.shared_ = !shared.empty();
  if (out.shared_) {
    if (Result<void> good = judge_shared_folder(shared); !good) return good.error();
    out.folder_ = shared;
    return out;
  }
  CUFIT_TRY(quotas, quota_folder(variables));
  out.folder_ = quotas + "/queue";
  if (Result<void> made = own_folder(out.folder_); !made) return made.error();
  return out;
}

WaitQueue WaitQueue::to_read(std::string folder) {
  WaitQueue out;
  out.folder_ = std::move(folder);
  return out;
}

Result<QueueLock> WaitQueue::lock(double seconds) const {
  // The folder itself: no file of one user that another would have to open.
  FileHandle file(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() < 0) return queue_error(folder_, errno);
  const double end = running_seconds() + seconds;
  long pause_ns = 1'000'000;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return queue_error(folder_, errno);
    if (running_seconds() > end)
      return fail(Code::timeout,
                  format("`{}` has been locked by another process for {:g} s", folder_, seconds));
    timespec pause{0, pause_ns};
    ::nanosleep(&pause, nullptr);
    pause_ns = std::min(pause_ns * 2, 20'000'000L);
  }
  return QueueLock(std::move(file));
}

std::optional<LiveTicket> WaitQueue::read_one(const std::string& name, Dead dead,
                                              bool& damaged) const {
  const std::string path = folder_ + "/" + name;
  FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode)) return std::nullopt;
  std::string text(formats::k_ticket_bytes + 1, '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  const Result<WaitTicket> parsed = formats::parse_wait_ticket(text);
  const std::optional<uint32_t> holder = ticket_holder(file.get());
  const bool whole = parsed && ticket_name(*parsed) == name;
  LiveTicket out;
  bool lives = holder.has_value(), here = true;
  if (whole) {
    out.ticket = *parsed;
    here = parsed->boot == boot_id() && parsed->pid_namespace == pid_namespace();
    if (here && holder) lives = *holder == 0 || *holder == parsed->pid;
    if (here && !lives) lives = is_process_of(*parsed, status.st_uid);
  }
  damaged = !whole && lives;
  out.name = name;
  out.owner = status.st_uid;
  out.own = status.st_uid == ::geteuid();
  if (lives && whole) {
    // As this process sees it: of a container's the number that the kernel tells.
    if (holder && *holder != 0) out.ticket.pid = *holder;
    if (!here && (!holder || *holder == 0)) out.ticket.pid = 0;
    const char state =
        out.ticket.pid == 0 ? '\0' : process_state(static_cast<pid_t>(out.ticket.pid)).state;
    out.stopped = state == 'T' || state == 't';
    return out;
  }
  const bool old = std::time(nullptr) - status.st_mtime > k_ticket_age_seconds;
  if (!lives && dead == Dead::remove && (here || old) && (out.own || ::geteuid() == 0))
    ::unlink(path.c_str());
  return std::nullopt;
}

QueueReading WaitQueue::read(Dead dead) const {
  QueueReading out;
  std::map<uint32_t, size_t> of_user;
  for (const std::string& name : ticket_names(folder_)) {
    if (name == name_) {
      out.tickets.push_back({own_, name_, ::geteuid(), true, false});
      continue;
    }
    bool damaged = false;
    std::optional<LiveTicket> ticket = read_one(name, dead, damaged);
    if (damaged) out.damaged.push_back(name);
    if (!ticket || ++of_user[ticket->owner] > k_most_tickets_of_user) continue;
    out.tickets.push_back(std::move(*ticket));
  }
  std::stable_sort(
      out.tickets.begin(), out.tickets.end(),
      [](const LiveTicket& a, const LiveTicket& b) { return a.ticket.number < b.ticket.number; });
  return out;
}

Result<void> WaitQueue::write_own() {
  CUFIT_TRY(text, formats::make_wait_ticket(own_));
  const FileLimit limit;
  const std::string path = folder_ + "/" + name_;
  const ssize_t put = ::pwrite(file_.get(), text.data(), text.size(), 0);
  if (put == static_cast<ssize_t>(text.size())) return {};
  return queue_error(path, put < 0 ? errno : ENOSPC);
}

Result<void> WaitQueue::file(WaitTicket ticket) {
  const uint64_t now = boot_nanoseconds();
  ticket.number = now;
  // A number of the future is a lie: nobody is put behind it.
  for (const std::string& name : ticket_names(folder_)) {
    const uint64_t other =
        parse_uint(std::string_view(name).substr(0, k_number_digits)).value_or(UINT64_MAX);
    if (other <= now) ticket.number = std::max(ticket.number, other + 1);
  }
  ticket.pid = static_cast<uint32_t>(::getpid());
  ticket.start_ticks = process_state(0).start_ticks;
  ticket.boot = boot_id();
  ticket.pid_namespace = pid_namespace();
  own_ = std::move(ticket);
  name_ = ticket_name(own_);
  const std::string path = folder_ + "/" + name_;
  file_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file_.get() < 0) {
    name_.clear();
    return queue_error(path, errno);
  }
  // Moved before it is locked: the lock goes with any descriptor of the file that the process closes.
  if (const int moved = ::fcntl(file_.get(), F_DUPFD_CLOEXEC, k_least_kept_file); moved >= 0)
    file_.reset(moved);
  if (shared_) (void)::fchmod(file_.get(), 0644);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  // Without (a file system that knows none) the process alone says that the ticket lives.
  (void)::fcntl(file_.get(), F_SETLK, &lock);
  return write_own();
}

Result<void> WaitQueue::change(const WaitTicket& ticket) {
  own_ = ticket;
  return write_own();
}

void WaitQueue::keep_over_exec() const { (void)::fcntl(file_.get(), F_SETFD, 0); }

WaitQueue::~WaitQueue() {
  if (file_.get() >= 0 && !name_.empty()) ::unlink((folder_ + "/" + name_).c_str());
}

uint32_t ancestor_among(uint32_t process, const std::vector<uint32_t>& pids) {
  for (int steps = 0; process > 1 && steps < 256; ++steps) {
    if (std::find(pids.begin(), pids.end(), process) != pids.end()) return process;
    process = static_cast<uint32_t>(process_state(static_cast<pid_t>(process)).parent);
  }
  return 0;
}

}  // namespace cufit::host
