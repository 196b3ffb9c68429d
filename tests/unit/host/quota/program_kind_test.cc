// SPDX-License-Identifier: Apache-2.0
#include "host/quota/program_kind.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "support/elf_builder.h"
#include "support/fake_root.h"

namespace cufit::host {
namespace program_kind_test {

using Links = ProgramKind::Links;

class ProgramKindTest : public ::testing::Test {
 protected:
  // Paths of programs are the machine's own: find_program() and execve() look there.
  ProgramKind kind(const std::string& path, std::vector<std::string> variables = {}) const {
    return read_program_kind(RealHost("/", {}), root_.at(path), variables);
  }
  std::string version_of(const std::string& path, std::vector<std::string> variables = {}) const {
    const ProgramKind found = kind(path, std::move(variables));
    return found.torch ? found.torch->text() : "";
  }
  void program(const std::string& path, const std::string& text) {
    root_.file(path, text).mode(path, 0755);
  }
  void torch(const std::string& prefix, const std::string& version) {
    root_.file(prefix + "/lib/python3.11/site-packages/torch/version.py",
               "__version__ = '" + version + "'\n");
  }
  test::FakeRoot root_;
};

TEST_F(ProgramKindTest, ThisTestIsDynamic) {
  EXPECT_EQ(read_program_kind(RealHost("/", {}), "/proc/self/exe", {}).links, Links::dynamic);
}

TEST_F(ProgramKindTest, WhatIsNoProgramIsNotRead) {
  program("/text", "hello");
  program("/cut", std::string("\x7f"
                              "ELF\x02\x01\x01",
                              7));
  for (const char* path : {"/text", "/cut", "/none", ""})
    EXPECT_EQ(kind(path).links, Links::not_read) << path;
}

TEST_F(ProgramKindTest, AScriptIsItsInterpreter) {
  program("/bin/sh.sh", "#!/bin/sh\nexit\n");
  EXPECT_EQ(kind("/bin/sh.sh").path, "/bin/sh");
  EXPECT_EQ(kind("/bin/sh.sh").links, read_program_kind(RealHost("/", {}), "/bin/sh", {}).links);
  program("/bin/spaced", "#!   /bin/sh   -e");
  EXPECT_EQ(kind("/bin/spaced").path, "/bin/sh");
  const std::vector<std::string> path = {"PATH=" + root_.at("/bin")};
  program("/bin/python3", "#!/bin/sh\n");
  for (const char* line : {"/usr/bin/env python3", "/usr/bin/env -S python3 -u",
                           "/usr/bin/env -Spython3 -u", "/usr/bin/env A=b python3"}) {
    program("/bin/script", std::string("#!") + line + "\n");
    EXPECT_EQ(kind("/bin/script", path).path, "/bin/sh") << line;
  }
  // One that is not there, and one that is its own interpreter.
  program("/bin/lost", "#!/not/there\n");
  EXPECT_EQ(kind("/bin/lost").links, Links::not_read);
  program("/bin/loop", "#!" + root_.at("/bin/loop") + "\n");
  EXPECT_EQ(kind("/bin/loop").links, Links::not_read);
  program("/bin/empty", "#!");
  EXPECT_EQ(kind("/bin/empty").links, Links::not_read);
  program("/bin/env", "#!/usr/bin/env   \n");
  EXPECT_EQ(kind("/bin/env").links, Links::not_read);
}

// Of another user and set-user-ID: the loader drops LD_PRELOAD.
TEST_F(ProgramKindTest, SetUserId) {
  struct statvfs system {};
  ASSERT_EQ(::statvfs(root_.path().c_str(), &system), 0);
  if (::geteuid() != 0 || (system.f_flag & ST_NOSUID) != 0)
    GTEST_SKIP() << "needs root and a file system that honours the bit";
  program("/su", "x");
  ASSERT_EQ(::chown(root_.at("/su").c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(root_.at("/su").c_str(), 04755), 0);
  EXPECT_EQ(kind("/su").links, Links::secure);
  ASSERT_EQ(::chown(root_.at("/su").c_str(), 0, 0), 0);
  ASSERT_EQ(::chmod(root_.at("/su").c_str(), 04755), 0);
  EXPECT_EQ(kind("/su").links, Links::not_read) << "nothing is gained by who has it";
  ASSERT_EQ(::chmod(root_.at("/su").c_str(), 02755), 0);
  ASSERT_EQ(::chown(root_.at("/su").c_str(), 0, 65534), 0);
  ASSERT_EQ(::chmod(root_.at("/su").c_str(), 02755), 0);
  EXPECT_EQ(kind("/su").links, Links::secure);
}

TEST_F(ProgramKindTest, TorchOfTheEnvironmentThatRuns) {
  program("/venv/bin/python3", "x");
  torch("/venv", "2.10.1+cu130");
  EXPECT_EQ(version_of("/venv/bin/python3"), "2.10.1");
  program("/venv/bin/torchrun", "#!" + root_.at("/venv/bin/python3") + "\n");
  EXPECT_EQ(version_of("/venv/bin/torchrun"), "2.10.1");
  // Started by a shell: the Python that it would find, not one that lies beside the shell.
  program("/other/bin/python", "x");
  torch("/other", "2.9.0");
  program("/run.sh", "#!/bin/sh\npython train.py\n");
  EXPECT_EQ(version_of("/run.sh", {"PATH=" + root_.at("/other/bin") + ":/bin"}), "2.9.0");
  EXPECT_EQ(version_of("/run.sh", {"PATH=/nowhere", "VIRTUAL_ENV=" + root_.at("/venv")}), "2.10.1");
  // An environment without torch: none, whatever else is active.
  program("/bare/bin/python3", "x");
  root_.folder("/bare/lib/python3.11/site-packages");
  EXPECT_EQ(version_of("/bare/bin/python3", {"VIRTUAL_ENV=" + root_.at("/venv")}), "");
}

}  // namespace program_kind_test
}  // namespace cufit::host
