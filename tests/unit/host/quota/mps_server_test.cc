// SPDX-License-Identifier: Apache-2.0
#include "host/quota/mps_server.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "host/quota/quota_folder.h"
#include "support/fake_root.h"

namespace cufit::host {
namespace mps_server_test {

int listen_at(const std::string& path, int kind) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  const int file = ::socket(AF_UNIX, kind, 0);
  if (::bind(file, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(file, 4) != 0)
    return -1;
  return file;
}

std::vector<std::string> pipes(const test::FakeRoot& root) {
  return {"A=b", "CUDA_MPS_PIPE_DIRECTORY=" + root.path()};
}

TEST(MpsServer, ADaemonIsThereWhereItListens) {
  for (const int kind : {SOCK_STREAM, SOCK_SEQPACKET}) {
    test::FakeRoot root;
    EXPECT_EQ(reachable_mps(pipes(root)), "");
    const int file = listen_at(root.at("/control"), kind);
    ASSERT_GE(file, 0);
    EXPECT_EQ(reachable_mps(pipes(root)), root.path());
    // What a daemon that was killed leaves behind.
    ::close(file);
    EXPECT_EQ(reachable_mps(pipes(root)), "");
  }
  test::FakeRoot root;
  root.file("/control", "no socket");
  EXPECT_EQ(reachable_mps(pipes(root)), "");
  EXPECT_EQ(reachable_mps({"CUDA_MPS_PIPE_DIRECTORY=/" + std::string(500, 'x')}), "");
}

TEST(MpsServer, ADaemonThatDoesNotStartNamesItsLog) {
  test::FakeRoot root;
  root.file("/control", "#!/bin/sh\necho 'no devices' >&2\nexit 3\n").mode("/control", 0755);
  root.folder("/q").mode("/q", 0700);
  const auto started = start_mps(root.at("/control"), root.at("/q"), {"PATH=/usr/bin:/bin"});
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().what.find("exit code 3"), std::string::npos) << started.error().what;
  EXPECT_NE(started.error().what.find("start.log"), std::string::npos);
  EXPECT_NE(started.error().what.find("no devices"), std::string::npos);
  EXPECT_FALSE(start_mps(root.at("/none"), root.at("/q"), {}));
  root.folder("/" + std::string(90, 'd')).mode("/" + std::string(90, 'd'), 0700);
  const auto far = start_mps(root.at("/control"), root.at("/" + std::string(90, 'd')), {});
  ASSERT_FALSE(far);
  EXPECT_EQ(far.error().code, Code::unsupported);
  EXPECT_TRUE(std::filesystem::is_empty(root.at("/" + std::string(90, 'd'))));
}

TEST(MpsServer, WhatItSaysGoesIntoItsFolderOrNowhere) {
  test::FakeRoot root;
  root.file("/control", "#!/bin/sh\nexit 0\n").mode("/control", 0755);
  const std::string own = "/q/" + std::string(k_mps_folder) + this_launch();
  root.folder("/q").mode("/q", 0700).folder(own).mode(own, 0700);
  root.folder(own + "/log").mode(own + "/log", 0700);
  std::filesystem::create_symlink("/dev/null", root.at(own + "/log/start.log"));
  const auto started = start_mps(root.at("/control"), root.at("/q"), {"PATH=/usr/bin:/bin"});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::io);
  EXPECT_NE(started.error().what.find("start.log"), std::string::npos) << started.error().what;
}

// A process that is named like the daemon, and the pipes that it was given.
pid_t daemon_with(const std::string& pipes) {
  const pid_t child = ::fork();
  if (child != 0) {
    ::usleep(100'000);  // it has become its program
    return child;
  }
  std::string variable = "CUDA_MPS_PIPE_DIRECTORY=" + pipes;
  char* const variables[] = {variable.data(), nullptr};
  ::execle("/bin/sleep", "nvidia-cuda-mps-control", "60", nullptr, variables);
  ::_exit(127);
}

TEST(MpsServer, OnlyTheDaemonOfThesePipesIsEnded) {
  for (const bool own : {true, false}) {
    test::FakeRoot root;
    const OwnMps mps{root.at("/mps-1-2-3")};
    const pid_t daemon = daemon_with(own ? mps_pipe_folder(mps) : "/tmp/of-another-launch");
    root.file("/mps-1-2-3/pipe/nvidia-cuda-mps-control.pid", std::to_string(daemon) + "\n");
    stop_mps(mps, "/none");
    EXPECT_FALSE(std::filesystem::exists(mps.folder));
    int status = 0;
    if (own) {
      ASSERT_EQ(::waitpid(daemon, &status, 0), daemon);
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    } else {
      EXPECT_EQ(::waitpid(daemon, &status, WNOHANG), 0) << "another launch's daemon lives on";
      ::kill(daemon, SIGKILL);
      ::waitpid(daemon, &status, 0);
    }
  }
}

}  // namespace mps_server_test
}  // namespace cufit::host
