// SPDX-License-Identifier: Apache-2.0
#include "host/files/paths.h"

#include <filesystem>

#include "base/format.h"

namespace cufit::host {

namespace fs = std::filesystem;

namespace {

Result<void> done_or(const std::error_code& error, const std::string& path) {
  if (!error) return {};
  return fail(Code::io, format("`{}`: {}", path, error.message()));
}

}  // namespace

std::string working_folder() {
  std::error_code failed;
  const fs::path folder = fs::current_path(failed);
  return failed ? "." : folder.string();
}

std::string absolute_path(const std::string& path) {
  std::error_code failed;
  const fs::path out = fs::absolute(path, failed).lexically_normal();
  return failed ? path : out.string();
}

std::vector<std::string> absolute_folders(const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  for (const std::string& path : paths) {
    std::string folder = absolute_path(path);
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    out.push_back(std::move(folder));
  }
  return out;
}

std::string relative_path(const std::string& path, const std::string& folder) {
  std::error_code failed;
  const fs::path out =
      fs::relative(fs::absolute(path, failed), fs::absolute(folder, failed), failed);
  return failed ? std::string() : out.string();
}

std::string resolved_path(const std::string& path) {
  std::error_code failed;
  const fs::path out = fs::weakly_canonical(path, failed);
  return failed ? std::string() : out.string();
}

bool path_exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool entry_exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_link(const std::string& path) {
  std::error_code ignored;
  return fs::is_symlink(path, ignored);
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool same_entry(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

std::string find_upwards(const std::string& folder, const std::string& name) {
  fs::path at = fs::path(folder).lexically_normal();
  for (;;) {
    const std::string candidate = (at / name).string();
    if (entry_exists(candidate)) return candidate;
    const fs::path parent = at.parent_path();
    if (parent == at || parent.empty()) return {};
    at = parent;
  }
}

Result<void> create_folders(const std::string& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  // Of a file in the way one C++ library says "exists" and another "not a directory".
  std::error_code unread;
  if (failed && fs::exists(path, unread) && !fs::is_directory(path, unread)) {
    failed = std::make_error_code(std::errc::not_a_directory);
  }
  return done_or(failed, path);
}

Result<void> copy_file(const std::string& from, const std::string& to) {
  std::error_code failed;
  fs::copy_file(from, to, failed);
  return done_or(failed, from);
}

Result<void> rename_file(const std::string& from, const std::string& to) {
  std::error_code failed;
  fs::rename(from, to, failed);
  return done_or(failed, to);
}

Result<void> let_run(const std::string& path) {
  std::error_code failed;
  fs::permissions(path, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                  fs::perm_options::add, failed);
  return done_or(failed, path);
}

}  // namespace cufit::host
