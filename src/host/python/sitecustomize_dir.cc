// SPDX-License-Identifier: Apache-2.0
#include "host/python/sitecustomize_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/format.h"

namespace cufit::host {

Result<ScriptFolder> ScriptFolder::make(const std::string& purpose,
                                        const std::string& sitecustomize,
                                        const std::vector<std::string>& below) {
  const char* base = std::getenv("TMPDIR");
  std::error_code unknown;
  // The child may change its working directory before it starts another Python.
  const std::filesystem::path absolute =
      std::filesystem::absolute(base != nullptr && *base != '\0' ? base : "/tmp", unknown);
  std::string path = absolute.string() + "/cufit-" + purpose + "-XXXXXX";
  if (mkdtemp(path.data()) == nullptr)
    return fail(Code::io, format("`{}`: {}", path, std::strerror(errno)));
  ScriptFolder folder(std::move(path));
  for (const std::string& name : below) {
    const std::string sub = folder.path_ + "/" + name;
    if (mkdir(sub.c_str(), 0700) != 0)
      return fail(Code::io, format("`{}`: {}", sub, std::strerror(errno)));
  }
  if (Result<void> written = folder.add("sitecustomize.py", sitecustomize); !written)
    return written.error();
  return folder;
}

Result<void> ScriptFolder::add(const std::string& name, std::string_view bytes) const {
  const std::string path = path_ + "/" + name;
  std::FILE* file = std::fopen(path.c_str(), "wxb");
  bool good = file != nullptr;
  if (good) {
    good = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    good = std::fclose(file) == 0 && good;
  }
  if (!good) return fail(Code::io, format("`{}` cannot be written", path));
  return {};
}

Result<void> ScriptFolder::add_program(const std::string& name, std::string_view bytes) const {
  if (Result<void> added = add("bin/" + name, bytes); !added) return added.error();
  const std::string path = path_ + "/bin/" + name;
  if (chmod(path.c_str(), 0700) != 0)
    return fail(Code::io, format("`{}`: {}", path, std::strerror(errno)));
  return {};
}

ScriptFolder::ScriptFolder(ScriptFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

ScriptFolder::~ScriptFolder() {
  if (path_.empty()) return;
  std::error_code left;  // links are removed, not followed
  std::filesystem::remove_all(path_, left);
}

std::string ScriptFolder::python_path() const {
  const char* before = std::getenv("PYTHONPATH");
  return before != nullptr && *before != '\0' ? path_ + ":" + before : path_;
}

std::string ScriptFolder::search_path() const {
  const char* before = std::getenv("PATH");
  return path_ + "/bin:" + (before != nullptr && *before != '\0' ? before : "/usr/bin:/bin");
}

}  // namespace cufit::host
