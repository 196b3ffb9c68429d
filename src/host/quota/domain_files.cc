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
#include "host/process/spawn.h"

namespace cufit::host {
namespace {

// 4096 slots of 512 bytes behind the header: no domain is larger (base/abi/quota_domain.h).
constexpr size_t k_largest_domain = (2u << 20) + 4096;
constexpr size_t k_most_domain_files = 1024;  // of one folder
constexpr size_t k_most_maps_bytes = 64u << 20;

struct OpenDomain {
  FileHandle file;
  uint32_t owner = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
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
  out.size = static_cast<uint64_t>(status.st_size);
  if (out.size > k_largest_domain)
    return fail(Code::malformed,
                format("`{}`: {} bytes are more than a quota domain has", path, out.size));
  return out;
}

Result<std::string> bytes_of(const OpenDomain& open, const std::string& path) {
  std::string bytes(open.size, '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        ::pread(open.file.get(), &bytes[done], bytes.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(Code::io, format("`{}`: {}", path, std::strerror(errno)));
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  bytes.resize(done);
  return bytes;
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

// Field 22 of /proc/PID/stat; the name before it may hold blanks and brackets.
std::optional<uint64_t> start_ticks_of(const Host& host, uint32_t pid) {
  const Result<std::string> stat = host.read_file(format("/proc/{}/stat", pid), 64u << 10);
  if (!stat) return std::nullopt;
  const size_t end = stat->rfind(')');
  if (end == std::string::npos) return std::nullopt;
  const std::vector<std::string_view> fields = split(trim(stat->substr(end + 1)), ' ');
  return fields.size() > 19 ? parse_uint(fields[19]) : std::nullopt;
}

uint64_t pid_namespace_here(const Host& host) {
  const Result<std::string> link = host.read_link("/proc/self/ns/pid");  // "pid:[4026531836]"
  if (!link || link->size() < 7 || link->back() != ']') return 0;
  return parse_uint(std::string_view(*link).substr(5, link->size() - 6)).value_or(0);
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
  if (start_ticks_of(host, process.pid) != process.start_ticks) return false;
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
  const uint32_t user = ::geteuid();
  for (const char* parent : {"/dev/shm", "/tmp"}) {
    add_folder(host, format("{}/cufit-{}", parent, user), out);
    if (user != 0) continue;
    for (const std::string& name : host.list(parent).value_or(std::vector<std::string>()))
      if (starts_with(name, "cufit-") && is_number(std::string_view(name).substr(6)))
        add_folder(host, format("{}/{}", parent, name), out);
  }
  if (const std::optional<std::string> runtime = host.variable("XDG_RUNTIME_DIR");
      runtime && starts_with(*runtime, "/"))
    add_folder(host, *runtime + "/cufit", out);
  if (user == 0)
    for (const std::string& name : host.list("/run/user").value_or(std::vector<std::string>()))
      if (is_number(name)) add_folder(host, format("/run/user/{}/cufit", name), out);
  return out;
}

Result<facts::LiveDomain> read_quota_domain(const Host& host, const std::string& path) {
  CUFIT_TRY(open, open_domain(path));
  CUFIT_TRY(bytes, bytes_of(open, path));
  Result<formats::QuotaDomain> parsed = formats::parse_quota_domain(bytes);
  if (!parsed) return fail(parsed.error().code, format("`{}`: {}", path, parsed.error().what));
  facts::LiveDomain out;
  out.path = path;
  out.owner = open.owner;
  out.domain = std::move(*parsed);
  std::vector<formats::QuotaProcess> all = std::move(out.domain.processes);
  out.domain.processes.clear();
  for (formats::QuotaDevice& device : out.domain.devices) device.used_bytes = 0;
  const uint64_t namespace_here = pid_namespace_here(host);
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
