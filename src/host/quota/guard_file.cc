// SPDX-License-Identifier: Apache-2.0
#include "host/quota/guard_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/format.h"
#include "base/sha256.h"
#include "host/files/atomic_write.h"
#include "host/files/paths.h"
#include "host/process/spawn.h"
#include "host/quota/guard_library.h"
#include "host/quota/quota_folder.h"

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

struct Place {
  std::string above;  // made with those above it
  std::string folder;
};

// Whoever owns a folder may put another below it: all of them are this user's or root's, and nobody else writes there
// but into a sticky one.
std::string foreign_folder(const std::string& path) {
  for (size_t end = path.size(); end != std::string::npos && end > 0;
       end = path.rfind('/', end - 1)) {
    const std::string folder = path.substr(0, end);
    struct stat status {};
    if (::lstat(folder.c_str(), &status) != 0) return folder;
    // A link is where its folder says; what it points to is looked at by its own name.
    if (S_ISLNK(status.st_mode) && ::stat(folder.c_str(), &status) != 0) return folder;
    if (status.st_uid != 0 && status.st_uid != ::geteuid()) return folder;
    // A group of one's own, as many systems give each user, is nobody else.
    const bool others = (status.st_mode & 002) != 0 ||
                        ((status.st_mode & 020) != 0 && status.st_gid != ::getegid());
    if (others && (status.st_mode & S_ISVTX) == 0) return folder;
  }
  return {};
}

// Empty = it will do; else why not.
std::string unfit(const Place& place, bool above_is_own) {
  if (place.folder.find_first_of(" :\t\n") != std::string::npos)
    return "a blank or colon in its name";
  std::string there = place.above;
  while (there.size() > 1 && ::access(there.c_str(), F_OK) != 0)
    there.resize(std::max<size_t>(there.rfind('/'), 1));
  if (const std::string foreign = foreign_folder(there); !foreign.empty())
    return format("other users may change `{}`", foreign);
  // What lies beside it in a cache is nobody's business; a folder in /tmp has to be this user's.
  const Result<void> above = above_is_own ? own_folder(place.above) : create_folders(place.above);
  if (!above) return above.error().text();
  if (const Result<void> made = own_folder(place.folder); !made) return made.error().text();
  if (const std::string foreign = foreign_folder(place.folder); !foreign.empty())
    return format("other users may change `{}`", foreign);
  struct statvfs system {};
  if (::statvfs(place.folder.c_str(), &system) == 0 && (system.f_flag & ST_NOEXEC) != 0) {
    ::rmdir(place.folder.c_str());  // if it was not there before
    return "mounted noexec";
  }
  return {};
}

std::vector<Place> places(const Host& variables, const std::string& quota_folder) {
  std::vector<Place> out;
  const std::string cache = variables.variable("XDG_CACHE_HOME").value_or("");
  const std::string home = variables.variable("HOME").value_or("");
  if (starts_with(cache, "/") || starts_with(home, "/")) {
    const std::string above = (starts_with(cache, "/") ? cache : home + "/.cache") + "/cufit";
    out.push_back({above, above + "/guard"});
  }
  out.push_back({quota_folder, quota_folder + "/guard"});
  for (const std::string& other : quota_folders(variables))
    if (other != quota_folder) out.push_back({other, other + "/guard"});
  return out;
}

// `name` may have a folder in front. The first folder that will do.
Result<std::string> write_own(const Host& variables, const std::string& quota_folder,
                              const std::string& name, std::string_view bytes) {
  std::vector<std::string> reasons;
  for (const Place& place : places(variables, quota_folder)) {
    std::string why = unfit(place, !reasons.empty());
    const std::string path = place.folder + "/" + name;
    if (why.empty() && name.find('/') != std::string::npos)
      if (const Result<void> below = own_folder(path.substr(0, path.rfind('/'))); !below)
        why = below.error().text();
    if (why.empty() && holds(path, bytes)) return path;
    if (why.empty()) {
      ReplaceOptions options;
      options.mode = 0700;
      const int number = replace_file(path, bytes, options);
      if (number == 0 && holds(path, bytes)) return path;
      why = number != 0 ? std::strerror(number) : "what was written is not what is there";
    }
    reasons.push_back(format("`{}`: {}", place.folder, why));
  }
  return fail(Code::io, format("the guard cannot be put where programs may load it from "
                               "(XDG_CACHE_HOME can name another folder of yours): {}",
                               join(reasons, "; ")));
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
