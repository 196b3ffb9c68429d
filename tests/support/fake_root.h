// SPDX-License-Identifier: Apache-2.0
// A folder that stands for a machine, built by a test and removed after it: RealHost(root.path(),
// variables) reads it. Only for tests; owns nothing outside its temporary folder.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

#include "host/files/host.h"

namespace cufit::test {

class FakeRoot {
 public:
  FakeRoot() {
    std::string pattern = (std::filesystem::temp_directory_path() / "cufit-test-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) std::abort();
    path_ = pattern;
    ::chmod(path_.c_str(), 0755);  // an unprivileged user must be able to enter, see Unprivileged
  }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;
  ~FakeRoot() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string at(std::string_view inside) const { return path_ + std::string(inside); }

  FakeRoot& file(std::string_view inside, std::string_view text) {
    parents(inside);
    std::ofstream(at(inside), std::ios::binary)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
    return *this;
  }
  FakeRoot& mode(std::string_view inside, mode_t mode) {
    if (::chmod(at(inside).c_str(), mode) != 0) std::abort();
    return *this;
  }
  FakeRoot& folder(std::string_view inside) {
    std::filesystem::create_directories(at(inside));
    return *this;
  }
  FakeRoot& link(std::string_view inside, std::string_view target) {
    parents(inside);
    std::filesystem::create_symlink(target, at(inside));
    return *this;
  }

  host::RealHost host(std::map<std::string, std::string> variables = {}) const {
    return host::RealHost(path_, std::move(variables));
  }

 private:
  void parents(std::string_view inside) {
    std::filesystem::create_directories(std::filesystem::path(at(inside)).parent_path());
  }
  std::string path_;
};

// While it lives, a test that the super-user runs has the rights of nobody, so that permissions
// mean something.
class Unprivileged {
 public:
  Unprivileged() : was_root_(::geteuid() == 0) {
    if (was_root_ && ::setresuid(65534, 65534, 0) != 0) std::abort();
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;
  ~Unprivileged() {
    if (was_root_ && ::setresuid(0, 0, 0) != 0) std::abort();
  }

 private:
  bool was_root_;
};

}  // namespace cufit::test
