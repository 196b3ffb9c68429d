// SPDX-License-Identifier: Apache-2.0
#include "host/recording.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/format.h"
#include "host/dump.h"
#include "host/facts_json.h"

namespace cufit::host {
namespace {

constexpr size_t k_recording_limit =
    64u << 20;  // ours are below 1 MB; a pasted log is cut earlier by its reader

Error failed(const std::string& path, const char* doing) {
  Code code = errno == EACCES || errno == EPERM || errno == EROFS ? Code::no_permission
              : errno == ENOENT                                   ? Code::not_found
                                                                  : Code::io;
  return fail(code, format("`{}`: {}: {}", path, doing, std::strerror(errno)));
}

}  // namespace

Result<void> save_recording(const std::string& path, const Facts& facts) {
  std::string text = facts_to_json(facts) + "\n";
  std::string temporary = format("{}.{}.tmp", path, getpid());
  int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return failed(path, "cannot be written");
  size_t written = 0;
  while (written < text.size()) {
    ssize_t count = write(file, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      Error error = failed(path, "cannot be written");
      close(file);
      unlink(temporary.c_str());
      return error;
    }
    written += static_cast<size_t>(count);
  }
  bool synced = fsync(file) == 0 || errno == EINVAL;  // EINVAL: the file system has no such thing
  if (close(file) != 0 || !synced || std::rename(temporary.c_str(), path.c_str()) != 0) {
    Error error = failed(path, "cannot be written");
    unlink(temporary.c_str());
    return error;
  }
  return {};
}

Result<Facts> load_facts(const Host& host, const std::string& path) {
  CUFIT_TRY(text, host.read_file(path, k_recording_limit));
  std::string_view start = trim(text);
  if (start.empty()) return fail(Code::malformed, format("`{}`: is empty", path));
  if (start.front() != '{') return facts_from_dump(text, path);
  CUFIT_TRY(facts, facts_from_json(text, path));
  if (facts.origin == "live") facts.origin = "recording";
  return facts;
}

}  // namespace cufit::host
