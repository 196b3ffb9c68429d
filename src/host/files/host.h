// SPDX-License-Identifier: Apache-2.0
// The only contact with the machine. Probes take a Host& and nothing else, so a test can give them
// a recorded tree: RealHost("/") is this machine, RealHost(dir) reads the same paths under `dir`
// with the given environment.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace cufit::host {

struct FileStatus {
  bool is_directory = false;
  bool is_regular = false;
  bool is_character_device = false;
  uint64_t size_bytes = 0;
  uint32_t mode = 0;   // st_mode
  uint32_t group = 0;  // st_gid
  uint32_t device_major = 0, device_minor = 0;
};

class Host {
 public:
  virtual ~Host() = default;
  // Whole file (proc and sys files report size 0 and are read to the end). A file over `limit` is
  // an error, never a silent half; only regular files are read, so a pipe or device in the way
  // cannot block or have side effects.
  virtual Result<std::string> read_file(const std::string& path,
                                        size_t limit = 16u << 20) const = 0;
  // The first `size` bytes, fewer when the file is shorter: for files whose start is enough and
  // whose rest costs time
  // (/proc/cpuinfo of a large machine takes milliseconds).
  virtual Result<std::string> read_head(const std::string& path, size_t size) const = 0;
  virtual Result<std::unique_ptr<ByteSource>> open(const std::string& path) const = 0;
  // Names in a directory without "." and "..", sorted.
  virtual Result<std::vector<std::string>> list(const std::string& path) const = 0;
  virtual Result<FileStatus> status(const std::string& path) const = 0;  // follows links
  virtual Result<std::string> read_link(const std::string& path) const = 0;
  virtual Result<std::string> real_path(const std::string& path) const = 0;
  virtual bool may_read_write(const std::string& path) const = 0;
  // Where connect() finds the socket of a daemon. Error{not_found}, {no_permission}: this user may not connect; {unsupported}:
  // no socket. Nothing is opened. What stands for a machine that does not run has none.
  virtual Result<std::string> socket_place(const std::string& path) const {
    return fail(Code::unsupported, "`" + path + "`: no socket");
  }
  // Size of the filesystem that holds `path` (statvfs). A folder that stands for a machine has
  // none: unsupported.
  virtual Result<uint64_t> filesystem_bytes(const std::string& path) const = 0;
  // Of it, what any user may still take.
  virtual Result<uint64_t> filesystem_free_bytes(const std::string& path) const {
    return fail(Code::unsupported, "`" + path + "`: not this machine");
  }
  // The newest `limit` bytes of the kernel's log buffer; lines as syslog(2) gives them ("<6>[ 12.3]
  // text").
  virtual Result<std::string> kernel_log(size_t limit = 1u << 20) const = 0;
  virtual std::optional<std::string> variable(std::string_view name) const = 0;
  virtual std::vector<std::pair<std::string, std::string>> variables() const = 0;  // sorted by name
  // The twelve letters by which a hypervisor names itself to its guests ("KVMKVMKVM"); empty =
  // none, or not this machine.
  virtual std::string hypervisor_signature() const { return {}; }
  bool exists(const std::string& path) const { return status(path).has_value(); }
};

// `root` "/" with the process environment by default; tests pass a folder and their own variables.
class RealHost final : public Host {
 public:
  RealHost();
  RealHost(std::string root, std::map<std::string, std::string> environment);
  Result<std::string> read_file(const std::string& path, size_t limit) const override;
  Result<std::string> read_head(const std::string& path, size_t size) const override;
  Result<std::unique_ptr<ByteSource>> open(const std::string& path) const override;
  Result<std::vector<std::string>> list(const std::string& path) const override;
  Result<FileStatus> status(const std::string& path) const override;
  Result<std::string> read_link(const std::string& path) const override;
  Result<std::string> real_path(const std::string& path) const override;
  bool may_read_write(const std::string& path) const override;
  Result<std::string> socket_place(const std::string& path) const override;
  Result<uint64_t> filesystem_bytes(const std::string& path) const override;
  Result<uint64_t> filesystem_free_bytes(const std::string& path) const override;
  Result<std::string> kernel_log(size_t limit) const override;
  std::optional<std::string> variable(std::string_view name) const override;
  std::vector<std::pair<std::string, std::string>> variables() const override;
  std::string hypervisor_signature() const override;

 private:
  enum class LastLink { follow, keep };
  // Where `path` lies for the operating system: links are resolved inside root_ and ".." never
  // leaves it.
  Result<std::string> under_root(const std::string& path, LastLink last = LastLink::follow) const;
  std::string root_;  // "" for the real machine, else without a trailing slash
  std::map<std::string, std::string> environment_;
};

}  // namespace cufit::host
