// SPDX-License-Identifier: Apache-2.0
#include "host/quota/guard_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/format.h"
#include "base/sha256.h"
#include "host/files/atomic_write.h"
#include "host/files/paths.h"
#include "host/process/spawn.h"
#include "host/quota/guard_library.h"

namespace cufit::host {
namespace {

// Whether the file is this user's alone and holds these very bytes.
bool holds(const std::string& path, std::string_view bytes) {
  FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return false;
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 022) != 0 ||
      static_cast<uint64_t>(status.st_size) != bytes.size())
    return false;
  std::string there(bytes.size(), '\0');
  size_t got = 0;
  for (ssize_t one = 0; got < there.size(); got += static_cast<size_t>(one)) {
    one = ::read(file.get(), there.data() + got, there.size() - got);
    if (one <= 0) return false;
  }
  return there == bytes;
}

// Empty = it will do; else why not.
std::string unfit(const std::string& folder) {
  if (folder.find_first_of(" :\t\n") != std::string::npos) return "a blank or colon in its name";
  if (const Result<void> made = create_folders(folder); !made) return made.error().text();
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return std::strerror(errno);
  if (status.st_uid != ::geteuid()) return "it belongs to another user";
  if ((status.st_mode & 022) != 0) return "other users may write to it";
  struct statvfs system {};
  if (::statvfs(folder.c_str(), &system) == 0 && (system.f_flag & ST_NOEXEC) != 0)
    return "mounted noexec";
  return {};
}

std::vector<std::string> folders(const Host& variables, const std::string& quota_folder) {
  std::vector<std::string> out;
  const std::string cache = variables.variable("XDG_CACHE_HOME").value_or("");
  const std::string home = variables.variable("HOME").value_or("");
  if (starts_with(cache, "/")) {
    out.push_back(cache + "/cufit/guard");
  } else if (starts_with(home, "/")) {
    out.push_back(home + "/.cache/cufit/guard");
  }
  out.push_back(quota_folder + "/guard");
  return out;
}

// `name` may have a folder in front. The first folder that will do.
Result<std::string> write_own(const Host& variables, const std::string& quota_folder,
                              const std::string& name, std::string_view bytes) {
  std::vector<std::string> reasons;
  for (const std::string& folder : folders(variables, quota_folder)) {
    const std::string path = folder + "/" + name;
    std::string why = unfit(path.substr(0, path.rfind('/')));
    if (why.empty() && holds(path, bytes)) return path;
    if (why.empty()) {
      ReplaceOptions options;
      options.mode = 0700;
      const int number = replace_file(path, bytes, options);
      if (number == 0 && holds(path, bytes)) return path;
      why = number != 0 ? std::strerror(number) : "what was written is not what is there";
    }
    reasons.push_back(format("`{}`: {}", folder, why));
  }
  return fail(Code::io, join(reasons, "; "));
}

std::string content_name(std::string_view bytes) { return sha256(bytes).substr(0, 16); }

}  // namespace

Result<std::string> write_guard_library(const Host& variables, const std::string& quota_folder) {
  const std::string_view bytes = guard_library();
  return write_own(variables, quota_folder, format("libcufit-guard-{}.so", content_name(bytes)),
                   bytes);
}

Result<std::string> write_spill_script(const Host& variables, const std::string& quota_folder) {
  const std::string_view text = spill_sitecustomize();
  CUFIT_TRY(path, write_own(variables, quota_folder,
                            format("spill-{}/sitecustomize.py", content_name(text)), text));
  return path.substr(0, path.rfind('/'));
}

}  // namespace cufit::host
