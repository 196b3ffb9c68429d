// SPDX-License-Identifier: Apache-2.0
#include "host/quota/domain_files.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "base/number.h"
#include "host/process/process_tree.h"
#include "host/process/spawn.h"
#include "host/quota/domain_file.h"
#include "host/quota/quota_folder.h"

namespace cufit::host {
namespace {

constexpr size_t k_most_domain_files = 1024;  // of one folder
constexpr size_t k_most_maps_bytes = 64u << 20;

struct OpenDomain {
  FileHandle file;
  uint32_t owner = 0;
  uint64_t inode = 0;
};

// Whoever else may write the file could make its reader wait or lie about others: own files alone, links not followed.
Result<OpenDomain> open_domain(const std::string& path) {
  OpenDomain out;
  out.file.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  const int why = errno;
  if (out.file.get() < 0) {
    if (why == ENOENT) return fail(Code::not_found, format("`{}`: no such file", path));
    if (why == ELOOP)
      return fail(Code::malformed, format("`{}`: a link, not the file of a quota domain", path));
    if (why == EACCES || why == EPERM)
      return fail(Code::no_permission, format("`{}`: a quota domain of another user", path));
    return fail(Code::io, format("`{}`: {}", path, std::strerror(why)));
  }
  struct stat status {};
  if (::fstat(out.file.get(), &status) != 0)
    return fail(Code::io, format("`{}`: {}", path, std::strerror(errno)));
  if (!S_ISREG(status.st_mode))
    return fail(Code::malformed, format("`{}`: not a regular file", path));
  if (::geteuid() != 0 && status.st_uid != ::geteuid())
    return fail(Code::no_permission, format("`{}`: a quota domain of another user", path));
  out.owner = status.st_uid;
  out.inode = status.st_ino;
  return out;
}

// Who holds a lock of these bytes: a pid as this process sees it, 0 = somebody whom it does not; nothing = nobody. `bytes` 0: to
// the end of the file.
std::optional<pid_t> lock_holder(int file, uint64_t offset, off_t bytes = 1) {
  struct flock request {};
  request.l_type = F_WRLCK;
  request.l_whence = SEEK_SET;
  request.l_start = static_cast<off_t>(offset);
  request.l_len = bytes;
  // Opened for reading, which asking for F_WRLCK allows.
  if (::fcntl(file, F_GETLK, &request) != 0 || request.l_type == F_UNLCK) return std::nullopt;
  return std::max<pid_t>(request.l_pid, 0);
}

// The rule of the guard (guard/slots.cc): the lock decides; a process that lost it (it closed a descriptor of the file)
// still counts while it is the same one and maps the file.
bool lives(const Host& host, const OpenDomain& open, const formats::QuotaProcess& process,
           uint64_t namespace_here, bool any_lock) {
  const bool here = process.pid_namespace == namespace_here;
  const std::optional<pid_t> holder =
      any_lock ? lock_holder(open.file.get(), process.lock_offset) : std::nullopt;
  // A guard that sweeps holds a dead slot's lock for a moment.
  if (holder && (!here || *holder == 0 || static_cast<uint32_t>(*holder) == process.pid))
    return true;
  if (!here || process.pid == 0 || process.pid > INT32_MAX) return false;
  // Most of them, and a tenth of what a look into /proc costs.
  if (::kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH) return false;
  const ProcessState found = process_state(static_cast<pid_t>(process.pid));
  if (found.state == 0 || found.start_ticks != process.start_ticks) return false;
  const Result<std::string> maps =
      host.read_file(format("/proc/{}/maps", process.pid), k_most_maps_bytes);
  return !maps || contains(*maps, format(" {} ", open.inode));
}

bool is_number(std::string_view text) { return parse_uint(text).has_value(); }

void add_folder(const Host& host, std::string path, std::vector<std::string>& out) {
  const Result<FileStatus> status = host.status(path);
  if (!status || !status->is_directory) return;
  if (std::find(out.begin(), out.end(), path) == out.end()) out.push_back(std::move(path));
}

}  // namespace

std::vector<std::string> domain_folders(const Host& host) {
  std::vector<std::string> out;
  // Launches under it use no other (quota_folder.h).
  if (const std::string named = host.variable("CUFIT_RUN_DIR").value_or(""); !named.empty()) {
    add_folder(host, named, out);
    return out;
  }
  for (const std::string& folder : quota_folders(host)) add_folder(host, folder, out);
  if (::geteuid() != 0) return out;
  for (const char* parent : {"/dev/shm", "/tmp"})
    for (const std::string& name : host.list(parent).value_or(std::vector<std::string>()))
      if (starts_with(name, "cufit-") && is_number(std::string_view(name).substr(6)))
        add_folder(host, format("{}/{}", parent, name), out);
  for (const std::string& name : host.list("/run/user").value_or(std::vector<std::string>()))
    if (is_number(name)) add_folder(host, format("/run/user/{}/cufit", name), out);
  return out;
}

Result<facts::LiveDomain> read_quota_domain(const Host& host, const std::string& path) {
  CUFIT_TRY(open, open_domain(path));
  Result<formats::QuotaDomain> parsed = read_domain(open.file.get());
  if (!parsed) return fail(parsed.error().code, format("`{}`: {}", path, parsed.error().what));
  facts::LiveDomain out;
  out.path = path;
  out.owner = open.owner;
  out.domain = std::move(*parsed);
  std::vector<formats::QuotaProcess> all = std::move(out.domain.processes);
  out.domain.processes.clear();
  for (formats::QuotaDevice& device : out.domain.devices) device.used_bytes = 0;
  const uint64_t namespace_here = pid_namespace();
  const bool any_lock = lock_holder(open.file.get(), 1, 0).has_value();  // byte 0 is no slot's
  for (formats::QuotaProcess& process : all) {
    if (!lives(host, open, process, namespace_here, any_lock)) {
      ++out.dead;
      continue;
    }
    for (size_t i = 0; i < out.domain.devices.size(); ++i) {
      uint64_t& sum = out.domain.devices[i].used_bytes;
      sum = process.used_bytes[i] > UINT64_MAX - sum ? UINT64_MAX : sum + process.used_bytes[i];
    }
    out.elsewhere.push_back(process.pid_namespace != namespace_here);
    out.domain.processes.push_back(std::move(process));
  }
  return out;
}

facts::QuotaDomains read_quota_domains(const Host& host) {
  facts::QuotaDomains out;
  for (const std::string& folder : domain_folders(host)) {
    Result<std::vector<std::string>> names = host.list(folder);
    if (!names) {
      out.skipped.push_back({folder, names.error().what});
      continue;
    }
    if (names->size() > k_most_domain_files) {
      out.skipped.push_back({folder, format("`{}`: more than {} files; the others are left out",
                                            folder, k_most_domain_files)});
      names->resize(k_most_domain_files);
    }
    for (const std::string& name : *names) {
      const std::string path = folder + "/" + name;
      const Result<FileStatus> status = host.status(path);
      // Folders hold rings, locks of queues are empty; links and strangers are told by open_domain().
      if (status && (status->is_directory || status->size_bytes == 0)) continue;
      Result<facts::LiveDomain> domain = read_quota_domain(host, path);
      if (domain)
        out.domains.push_back(std::move(*domain));
      else if (domain.error().code != Code::not_found)  // it ended meanwhile
        out.skipped.push_back({path, domain.error().what});
    }
  }
  return out;
}

}  // namespace cufit::host
