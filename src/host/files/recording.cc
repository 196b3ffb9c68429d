// SPDX-License-Identifier: Apache-2.0
#include "host/files/recording.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/format.h"
#include "facts/collect_env_facts.h"
#include "facts/facts_json.h"

namespace cufit::host {
namespace {

constexpr size_t k_recording_limit =
    64u << 20;  // ours are below 1 MB; a pasted log is cut earlier by its reader

Error recording_error(const std::string& path, const char* doing) {
  Code code = errno == EACCES || errno == EPERM || errno == EROFS ? Code::no_permission
              : errno == ENOENT                                   ? Code::not_found
                                                                  : Code::io;
  return fail(code, format("`{}`: {}: {}", path, doing, std::strerror(errno)));
}

}  // namespace

Result<void> save_recording(const std::string& path, const facts::Facts& facts) {
  std::string text = facts::facts_to_json(facts) + "\n";
  std::string temporary = format("{}.{}.tmp", path, getpid());
  int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return recording_error(path, "cannot be written");
  size_t written = 0;
  while (written < text.size()) {
    ssize_t count = write(file, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      Error error = recording_error(path, "cannot be written");
      close(file);
      unlink(temporary.c_str());
      return error;
    }
    written += static_cast<size_t>(count);
  }
  bool synced = fsync(file) == 0 || errno == EINVAL;  // EINVAL: the file system has no such thing
  if (close(file) != 0 || !synced || std::rename(temporary.c_str(), path.c_str()) != 0) {
    Error error = recording_error(path, "cannot be written");
    unlink(temporary.c_str());
    return error;
  }
  return {};
}

Result<facts::Facts> load_facts(const Host& host, const std::string& path) {
  CUFIT_TRY(text, host.read_file(path, k_recording_limit));
  std::string_view start = trim(text);
  if (start.empty()) return fail(Code::malformed, format("`{}`: is empty", path));
  if (start.front() != '{') return facts::facts_from_dump(text, path);
  CUFIT_TRY(facts, facts::facts_from_json(text, path));
  if (facts.origin == "live") facts.origin = "recording";
  return facts;
}

std::vector<facts::PrivateName> private_names(const Host& host) {
  std::vector<facts::PrivateName> out;
  for (const char* variable : {"USER", "LOGNAME", "SUDO_USER"}) {
    if (auto value = host.variable(variable)) out.push_back({*value, "user"});
  }
  if (auto home = host.variable("HOME")) {
    size_t slash = home->rfind('/');
    if (slash != std::string::npos && *home != "/root")
      out.push_back({home->substr(slash + 1), "user"});
  }
  if (auto value = host.variable("HOSTNAME")) out.push_back({*value, "host"});
  if (auto value = host.read_file("/proc/sys/kernel/hostname", 4096)) {
    out.push_back({std::string(trim(*value)), "host"});
  }
  return out;
}

}  // namespace cufit::host
