// SPDX-License-Identifier: Apache-2.0
// A folder that stands for a machine in tests; removed at the end.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "host/files/host.h"

namespace cufit::host {

class TemporaryTree {
 public:
  TemporaryTree() {
    std::string pattern = (std::filesystem::temp_directory_path() / "cufit-test-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  TemporaryTree(const TemporaryTree&) = delete;
  TemporaryTree& operator=(const TemporaryTree&) = delete;
  ~TemporaryTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  const std::string& root() const { return root_; }
  std::string at(const std::string& path) const { return root_ + path; }

  void write(const std::string& path, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(at(path)).parent_path());
    std::ofstream(at(path), std::ios::binary) << bytes;
  }
  void link(const std::string& path, const std::string& target) const {
    std::filesystem::create_directories(std::filesystem::path(at(path)).parent_path());
    std::filesystem::create_symlink(target, at(path));
  }
  void copy(const std::string& path, const std::string& from_real_path) const {
    std::filesystem::create_directories(std::filesystem::path(at(path)).parent_path());
    std::filesystem::copy_file(from_real_path, at(path),
                               std::filesystem::copy_options::overwrite_existing);
  }
  RealHost host(std::map<std::string, std::string> environment = {}) const {
    return RealHost(root_, std::move(environment));
  }

 private:
  std::string root_;
};

}  // namespace cufit::host
