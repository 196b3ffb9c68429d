// SPDX-License-Identifier: Apache-2.0
#include "host/files/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "base/reading.h"

extern char** environ;

namespace cufit::host {
namespace {

constexpr int k_most_links = 40;          // as the kernel's own limit (MAXSYMLINKS)
constexpr int k_syslog_read_all = 3;      // SYSLOG_ACTION_READ_ALL, does not consume
constexpr int k_syslog_size_buffer = 10;  // SYSLOG_ACTION_SIZE_BUFFER
constexpr size_t k_first_read_bytes =
    4096;  // proc and sys files: one page is nearly always all of it

Error error_of(int number, const std::string& path) {
  Code code = Code::io;
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      code = Code::not_found;
      break;
    case EACCES:
    case EPERM:
      code = Code::no_permission;
      break;
    case ELOOP:
    case ENAMETOOLONG:
      code = Code::malformed;
      break;
    case EINVAL:
    case EISDIR:
    case ENODEV:
    case ENOSYS:
    case ENXIO:
    case EOPNOTSUPP:
      code = Code::unsupported;
      break;
    case ETIMEDOUT:
      code = Code::timeout;
      break;
    default:
      break;
  }
  return fail(code, format("`{}`: {}", path, std::generic_category().message(number)));
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  ~FileDescriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

struct OpenFile {
  FileDescriptor descriptor;
  uint64_t size_bytes = 0;
};

// `place` is where the operating system finds it, `path` the name for messages.
Result<OpenFile> open_regular(const std::string& place, const std::string& path) {
  // Non-blocking: opening a pipe that nobody writes to would wait for ever. It has no effect on
  // regular files.
  int number = ::open(place.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (number < 0) return error_of(errno, path);
  FileDescriptor descriptor(number);
  struct stat status = {};
  if (::fstat(number, &status) != 0) return error_of(errno, path);
  if (S_ISDIR(status.st_mode)) return error_of(EISDIR, path);
  if (!S_ISREG(status.st_mode))
    return fail(Code::unsupported, format("`{}`: not a regular file", path));
  return OpenFile{std::move(descriptor), static_cast<uint64_t>(status.st_size)};
}

class FileSource final : public ByteSource {
 public:
  FileSource(std::string name, OpenFile file) : name_(std::move(name)), file_(std::move(file)) {}
  uint64_t size_bytes() const override { return file_.size_bytes; }
  const std::string& name() const override { return name_; }

  Result<size_t> read(uint64_t offset, std::span<std::byte> out) const override {
    if (offset >= file_.size_bytes) return size_t{0};
    size_t wanted = static_cast<size_t>(std::min<uint64_t>(out.size(), file_.size_bytes - offset));
    size_t done = 0;
    while (done < wanted) {
      ssize_t got = ::pread(file_.descriptor.number(), out.data() + done, wanted - done,
                            static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return error_of(errno, name_);
      if (got == 0) break;  // the file became shorter since it was opened
      done += static_cast<size_t>(got);
    }
    return done;
  }

 private:
  std::string name_;
  OpenFile file_;
};

std::map<std::string, std::string> process_environment() {
  std::map<std::string, std::string> out;
  for (char** entry = environ; entry && *entry; ++entry) {
    std::string_view text = *entry;
    size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    out.emplace(text.substr(0, equals),
                text.substr(equals + 1));  // the first of two equal names counts, as in getenv
  }
  return out;
}

Result<std::string> read_link_at(const std::string& place, const std::string& path) {
  char target[PATH_MAX];
  ssize_t length = ::readlink(place.c_str(), target, sizeof target);
  if (length < 0) return error_of(errno, path);
  if (static_cast<size_t>(length) == sizeof target) return error_of(ENAMETOOLONG, path);
  return std::string(target, static_cast<size_t>(length));
}

// The parts of a path, last one first, so that the next part is taken off the end.
void push_parts(std::string_view path, std::vector<std::string>& waiting) {
  std::vector<std::string_view> parts = split(path, '/');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!part->empty() && *part != ".") waiting.emplace_back(*part);
  }
}

}  // namespace

RealHost::RealHost() : environment_(process_environment()) {}

RealHost::RealHost(std::string root, std::map<std::string, std::string> environment)
    : root_(std::move(root)), environment_(std::move(environment)) {
  while (!root_.empty() && root_.back() == '/') root_.pop_back();  // "/" is the real machine
}

Result<std::string> RealHost::under_root(const std::string& path, LastLink last) const {
  if (path.find('\0') != std::string::npos)
    return error_of(ENOENT, path.substr(0, path.find('\0')));
  if (root_.empty()) return path;
  std::vector<std::string> waiting;
  push_parts(path, waiting);
  std::string inside;  // resolved so far, relative to root_, "" or "/a/b"
  int links = 0;
  while (!waiting.empty()) {
    std::string part = std::move(waiting.back());
    waiting.pop_back();
    if (part == "..") {
      inside.erase(inside.find_last_of('/') == std::string::npos ? 0 : inside.find_last_of('/'));
      continue;
    }
    std::string place = root_ + inside + "/" + part;
    struct stat status = {};
    bool is_link = ::lstat(place.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
    if (!is_link || (waiting.empty() && last == LastLink::keep)) {
      inside += "/" + part;
      continue;
    }
    if (++links > k_most_links) return error_of(ELOOP, path);
    CUFIT_TRY(target, read_link_at(place, path));
    if (starts_with(target, "/")) inside.clear();
    push_parts(target, waiting);
  }
  return root_ + (inside.empty() ? "/" : inside);
}

Result<std::string> RealHost::read_file(const std::string& path, size_t limit) const {
  note_reading(path);
  CUFIT_TRY(place, under_root(path));
  CUFIT_TRY(file, open_regular(place, path));
  if (file.size_bytes > limit) {
    return fail(Code::unsupported,
                format("`{}`: {} bytes are over the limit of {}", path, file.size_bytes, limit));
  }
  // One byte more than expected shows the end of the file without a second read of a growing
  // buffer.
  std::string out(std::max<size_t>(file.size_bytes + 1, k_first_read_bytes), '\0');
  size_t done = 0;
  while (true) {
    if (done == out.size()) out.resize(out.size() * 2);
    ssize_t got = ::read(file.descriptor.number(), out.data() + done, out.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error_of(errno, path);
    if (got == 0) break;
    done += static_cast<size_t>(got);
    if (done > limit) {
      return fail(Code::unsupported, format("`{}`: over the limit of {} bytes", path, limit));
    }
  }
  out.resize(done);
  return out;
}

Result<std::string> RealHost::read_head(const std::string& path, size_t size) const {
  CUFIT_TRY(place, under_root(path));
  CUFIT_TRY(file, open_regular(place, path));
  std::string out(size, '\0');
  size_t done = 0;
  while (done < size) {
    ssize_t got = ::read(file.descriptor.number(), out.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error_of(errno, path);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  out.resize(done);
  return out;
}

Result<std::unique_ptr<ByteSource>> RealHost::open(const std::string& path) const {
  note_reading(path);
  CUFIT_TRY(place, under_root(path));
  CUFIT_TRY(file, open_regular(place, path));
  return std::unique_ptr<ByteSource>(std::make_unique<FileSource>(path, std::move(file)));
}

Result<std::vector<std::string>> RealHost::list(const std::string& path) const {
  CUFIT_TRY(place, under_root(path));
  DIR* folder = ::opendir(place.c_str());
  if (!folder) return error_of(errno, path);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(folder)) {
    std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  int number = errno;
  ::closedir(folder);
  if (number != 0) return error_of(number, path);
  std::sort(names.begin(), names.end());
  return names;
}

Result<FileStatus> RealHost::status(const std::string& path) const {
  CUFIT_TRY(place, under_root(path));
  struct stat status = {};
  if (::stat(place.c_str(), &status) != 0) return error_of(errno, path);
  FileStatus out;
  out.is_directory = S_ISDIR(status.st_mode);
  out.is_regular = S_ISREG(status.st_mode);
  out.is_character_device = S_ISCHR(status.st_mode);
  out.size_bytes = static_cast<uint64_t>(status.st_size);
  out.mode = status.st_mode;
  out.group = status.st_gid;
  if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) {
    out.device_major = major(status.st_rdev);
    out.device_minor = minor(status.st_rdev);
  }
  return out;
}

Result<std::string> RealHost::read_link(const std::string& path) const {
  CUFIT_TRY(place, under_root(path, LastLink::keep));
  return read_link_at(place, path);
}

Result<std::string> RealHost::real_path(const std::string& path) const {
  CUFIT_TRY(place, under_root(path));
  std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(place.c_str(), nullptr),
                                                       &std::free);
  if (!resolved) return error_of(errno, path);
  if (root_.empty()) return std::string(resolved.get());
  // under_root has resolved every link below root_; root_ itself may lie behind links that do not
  // matter here.
  return place.substr(root_.size());
}

// access() and not an open(): opening /dev/nvidia0 wakes the GPU. The kernel asks the device cgroup
// here as well (inode_permission), so a container without the device says no even for root. The
// real user id equals the effective one because cufit is not set-user-id; AT_EACCESS would need
// faccessat2, which older container profiles refuse.
bool RealHost::may_read_write(const std::string& path) const {
  Result<std::string> place = under_root(path);
  return place && ::access(place->c_str(), R_OK | W_OK) == 0;
}

Result<std::string> RealHost::socket_place(const std::string& path) const {
  CUFIT_TRY(at, status(path));
  if (!S_ISSOCK(at.mode)) return fail(Code::unsupported, format("`{}`: no socket", path));
  CUFIT_TRY(place, under_root(path));
  // connect() asks the socket's file for the right to write.
  if (::access(place.c_str(), W_OK) != 0) return error_of(errno, path);
  return place;
}

Result<uint64_t> RealHost::filesystem_bytes(const std::string& path) const {
  if (!root_.empty())
    return fail(Code::unsupported, format("`{}`: a recorded folder has no filesystem size", path));
  struct statvfs status = {};
  if (::statvfs(path.c_str(), &status) != 0) return error_of(errno, path);
  return static_cast<uint64_t>(status.f_blocks) * status.f_frsize;
}

Result<uint64_t> RealHost::filesystem_free_bytes(const std::string& path) const {
  if (!root_.empty())
    return fail(Code::unsupported, format("`{}`: a recorded folder has no filesystem", path));
  struct statvfs status = {};
  if (::statvfs(path.c_str(), &status) != 0) return error_of(errno, path);
  return static_cast<uint64_t>(status.f_bavail) * status.f_frsize;
}

Result<std::string> RealHost::kernel_log(size_t limit) const {
  if (!root_.empty())
    return read_file("/dev/kmsg", limit);  // a test's tree holds the text as a plain file
  // syslog(2) and not /dev/kmsg: one call instead of one per line, and the same permission rules.
  int size = ::klogctl(k_syslog_size_buffer, nullptr, 0);
  if (size < 0) return error_of(errno, "kernel log");
  std::string out(std::min<size_t>(static_cast<size_t>(size), std::min<size_t>(limit, INT_MAX)),
                  '\0');
  int got = ::klogctl(k_syslog_read_all, out.data(), static_cast<int>(out.size()));
  if (got < 0) return error_of(errno, "kernel log");
  out.resize(static_cast<size_t>(got));
  return out;
}

std::optional<std::string> RealHost::variable(std::string_view name) const {
  auto found = environment_.find(std::string(name));
  if (found == environment_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::pair<std::string, std::string>> RealHost::variables() const {
  return {environment_.begin(), environment_.end()};
}

// CPUID leaf 1, ECX bit 31 is reserved for hypervisors to say that they are there; leaf 0x40000000
// is where they give their name in EBX, ECX, EDX. Without that bit the leaf holds whatever the
// processor's last leaf holds.
std::string RealHost::hypervisor_signature() const {
#if defined(__x86_64__)
  unsigned int a = 0, b = 0, c = 0, d = 0;
  if (!root_.empty() || !__get_cpuid(1, &a, &b, &c, &d) || !(c >> 31)) return {};
  __cpuid(0x40000000, a, b, c, d);
  std::string out;
  for (unsigned int word : {b, c, d})
    for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(word >> shift & 0xff);
  return out.substr(0, out.find('\0'));
#else
  return {};
#endif
}

}  // namespace cufit::host
