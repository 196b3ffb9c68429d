// SPDX-License-Identifier: Apache-2.0
#include "host/install/ownership.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "base/path.h"

namespace cufit::host {
namespace {

constexpr const char* k_variable = "CUFIT_SAFE_DIRECTORY";

// A link and what it leads to: either can be somebody else's.
void add_owners(const std::string& path, std::vector<OwnedPath>& out) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return;  // not there: nothing is run from it
  out.push_back({path, status.st_uid});
  if (S_ISLNK(status.st_mode) && ::stat(path.c_str(), &status) == 0)
    out.push_back({path, status.st_uid});
}

// Of the file alone: a directory service may not answer at all.
std::string owner_text(const Host& host, uint32_t uid) {
  const std::string number = std::to_string(uid);
  const Result<std::string> users = host.read_file("/etc/passwd", 1u << 20);
  if (!users) return "uid " + number;
  for (const std::string_view line : split_lines(*users)) {
    const std::vector<std::string_view> parts = split(line, ':');
    if (parts.size() > 2 && parts[2] == number) return format("uid {} ({})", number, parts[0]);
  }
  return "uid " + number;
}

// `all`, of which the first is or lies in `folder`.
std::optional<ForeignOwner> judge(const Host& host, const std::vector<OwnedPath>& all,
                                  const std::string& folder, bool named) {
  std::vector<uint32_t> own = {0, ::geteuid()};
  const std::optional<uint64_t> caller = parse_uint(host.variable("SUDO_UID").value_or(""));
  if (::geteuid() == 0 && caller && *caller <= 0xffffffff)
    own.push_back(static_cast<uint32_t>(*caller));
  const OwnedPath* foreign = first_foreign(all, named, own);
  if (foreign == nullptr || is_safe_directory(folder, host.variable(k_variable).value_or("")))
    return std::nullopt;
  return ForeignOwner{foreign->path, owner_text(host, foreign->uid)};
}

}  // namespace

const OwnedPath* first_foreign(const std::vector<OwnedPath>& of, bool named,
                               const std::vector<uint32_t>& own) {
  for (const OwnedPath& one : of) {
    const bool trusted = std::find(own.begin(), own.end(), one.uid) != own.end() ||
                         (named && one.uid == of.front().uid);
    if (!trusted) return &one;
  }
  return nullptr;
}

bool is_safe_directory(const std::string& folder, const std::string& list) {
  if (contains(folder, ":") && ends_with(list, folder)) return true;  // such a name is no list
  for (std::string_view safe : split(list, ':')) {
    if (safe == "*") return true;
    while (safe.size() > 1 && ends_with(safe, "/")) safe.remove_suffix(1);
    if (!starts_with(safe, "/")) continue;
    if (safe == "/" || folder == safe || starts_with(folder, std::string(safe) + "/")) return true;
  }
  return false;
}

std::optional<ForeignOwner> foreign_owner(const Host& host, const std::string& lock_folder,
                                          bool named, const std::string& class_name) {
  std::vector<OwnedPath> all;
  std::vector<std::string> parts = {"", "/cufit.lock"};
  if (!class_name.empty()) {
    const std::string envs = "/.cufit/envs";
    for (const std::string& part :
         {std::string("/.cufit"), envs, envs + "/" + class_name, envs + "/" + class_name + ".json"})
      parts.push_back(part);
  }
  for (const std::string& part : parts) add_owners(lock_folder + part, all);
  return judge(host, all, lock_folder, named);
}

std::optional<ForeignOwner> foreign_file(const Host& host, const std::string& path) {
  std::vector<OwnedPath> all;
  const std::string folder = parent_folder(path);
  add_owners(folder.empty() ? "/" : folder, all);
  add_owners(path, all);
  return judge(host, all, folder, false);
}

std::string with_safe_directory(const Host& host, const std::string& folder) {
  const std::string before = host.variable(k_variable).value_or("");
  return before.empty() ? folder : before + ":" + folder;
}

}  // namespace cufit::host
