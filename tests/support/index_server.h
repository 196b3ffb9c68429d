// SPDX-License-Identifier: Apache-2.0
// Starts tests/support/index_server.py and ends it by its id.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/places.h"

namespace cufit::test {

class IndexServer {
 public:
  IndexServer() {
    char name[] = "/tmp/cufit-index-XXXXXX";
    folder_ = mkdtemp(name);
    int ends[2];
    if (pipe(ends) != 0) return;
    child_ = fork();
    if (child_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      const std::string script = source_dir() + "/tests/support/index_server.py";
      execlp("python3", "python3", script.c_str(), log().c_str(), nullptr);
      _exit(127);
    }
    close(ends[1]);
    char digit;
    while (read(ends[0], &digit, 1) == 1 && digit != '\n') port_ += digit;
    close(ends[0]);
  }
  ~IndexServer() {
    stop();
    std::filesystem::remove_all(folder_);
  }
  IndexServer(const IndexServer&) = delete;
  IndexServer& operator=(const IndexServer&) = delete;

  bool runs() const { return !port_.empty(); }
  void stop() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = -1;
  }
  std::string url(const std::string& path) const { return "http://127.0.0.1:" + port_ + path; }
  std::string port() const { return port_; }
  std::string folder() const { return folder_; }
  // "PATH STATUS IF-NONE-MATCH" of every request so far.
  std::string requests() const {
    std::ifstream in(log());
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

 private:
  std::string log() const { return folder_ + "/requests"; }
  std::string folder_, port_;
  pid_t child_ = -1;
};

}  // namespace cufit::test
