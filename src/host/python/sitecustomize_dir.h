// SPDX-License-Identifier: Apache-2.0
// A folder with a sitecustomize.py that stands first on the PYTHONPATH of one child: how `cufit mem
// record` and `cufit fit` come into a Python program without a change to it. Only this user can
// look into the folder; it goes with all that is in it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace cufit::host {

class ScriptFolder {
 public:
  // In $TMPDIR or /tmp, named after `purpose`, with empty folders `below`.
  static Result<ScriptFolder> make(const std::string& purpose, const std::string& sitecustomize,
                                   const std::vector<std::string>& below);
  ScriptFolder(ScriptFolder&& other) noexcept;
  ScriptFolder& operator=(ScriptFolder&&) = delete;
  ~ScriptFolder();
  // A file beside the script.
  Result<void> add(const std::string& name, std::string_view bytes) const;
  // A program in its folder `bin`, which was made with it.
  Result<void> add_program(const std::string& name, std::string_view bytes) const;
  const std::string& path() const { return path_; }  // absolute
  std::string script() const { return path_ + "/sitecustomize.py"; }
  // For the child: this folder, then what cufit's own PYTHONPATH holds.
  std::string python_path() const;
  // The same of PATH, with the folder `bin`.
  std::string search_path() const;

 private:
  explicit ScriptFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace cufit::host
