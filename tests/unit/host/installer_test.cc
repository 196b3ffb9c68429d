// SPDX-License-Identifier: Apache-2.0
#include "host/installer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include <gtest/gtest.h>

#include "base/format.h"
#include "support/fake_root.h"

namespace cufit::host {
namespace {

// A script that stands for uv: says what it was asked, and does what its test wants.
class InstallerTest : public testing::Test {
 protected:
  std::string program(const std::string& name, const std::string& script) {
    root_.file(name, "#!/bin/sh\n" + script).mode(name, 0755);
    return root_.at(name);
  }
  std::string log() {
    std::ifstream in(root_.at("/log"));
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  RealHost host(std::map<std::string, std::string> variables) {
    variables.try_emplace("PATH", root_.at("/bin"));
    return RealHost("/", std::move(variables));
  }
  Installer uv(const std::string& script) {
    return {Installer::Kind::uv, {program("/bin/uv", script)}, "0.13.9"};
  }

  test::FakeRoot root_;
  Interrupts interrupts_;
};

TEST_F(InstallerTest, IsFoundInItsOrder) {
  const std::string in_path = program("/bin/uv", "echo 'uv 0.13.9 (x86_64)'");
  const std::string given = program("/other/uv", "echo uv 0.14.0");
  const auto found = find_uv(host({}), interrupts_);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->command[0], in_path);
  EXPECT_EQ(found->name(), "uv 0.13.9");
  EXPECT_EQ(find_uv(host({{"CUFIT_UV", given}}), interrupts_)->version, "0.14.0");
  // One that was named is not passed over.
  const auto wrong = find_uv(host({{"CUFIT_UV", "/no/such/uv"}}), interrupts_);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().text(), "CUFIT_UV: `/no/such/uv`: No such file or directory");
}

TEST_F(InstallerTest, AsAModuleOfPythonAndThenPip) {
  const std::string python =
      program("/bin/python3", "case \"$2\" in uv) echo uv 0.9.1;; *) exit 1;; esac");
  const auto module = find_uv(host({}), interrupts_);
  ASSERT_TRUE(module) << module.error().text();
  EXPECT_EQ(join(module->command, " "), python + " -m uv");
  program("/bin/python3", "case \"$2\" in pip) echo pip 25.1 from x;; *) exit 1;; esac");
  const auto pip = find_installer(host({}), "", interrupts_);
  ASSERT_TRUE(pip) << pip.error().text();
  EXPECT_EQ(pip->name(), "pip 25.1");
  program("/bin/python3", "exit 1");
  EXPECT_EQ(find_installer(host({}), "", interrupts_).error().code, Code::not_found);
}

TEST_F(InstallerTest, OfAnOldVersionIsRefused) {
  program("/bin/uv", "echo uv 0.4.30");
  const auto old = find_uv(host({}), interrupts_);
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().code, Code::unsupported);
}

TEST_F(InstallerTest, IsAskedForOneClass) {
  const Installer uv = this->uv("echo \"$@\" >>" + root_.at("/log") +
                                "; env | grep ^UV_ | sort >>" + root_.at("/log"));
  ::setenv("UV_TORCH_BACKEND", "auto", 1);
  ::unsetenv("UV_INDEX");
  CompileRequest request;
  request.inputs = {"requirements.txt", "pyproject.toml"};
  request.extras = {"train"};
  request.constraints = "c.txt";
  request.python = "3.11";
  request.platform = "x86_64-manylinux_2_28";
  request.torch_backend = "cu126";
  request.index = {{"http://me:secret@127.0.0.1/simple"}, "", true};
  request.output = "pylock.cu126.toml";
  const auto done = compile(uv, request, interrupts_);
  ::unsetenv("UV_TORCH_BACKEND");
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(log(),
            "pip compile requirements.txt pyproject.toml --extra train --constraints c.txt "
            "--format pylock.toml --output-file pylock.cu126.toml --python-version 3.11 "
            "--python-platform x86_64-manylinux_2_28 --torch-backend cu126 --no-sources-package "
            "torch --no-sources-package torchvision --no-sources-package torchaudio --no-header "
            "--no-progress --no-python-downloads --color never --offline\n"
            "UV_INDEX=http://me:secret@127.0.0.1/simple\n");
}

TEST_F(InstallerTest, FailuresAreToldApart) {
  CompileRequest request;
  const auto code_of = [&](const std::string& script) {
    const auto done = compile(uv(script), request, interrupts_);
    return done ? "done" : std::string(to_string(done.error().code)) + ": " + done.error().text();
  };
  EXPECT_EQ(code_of("echo '  x No solution found when resolving dependencies:' >&2; echo because "
                    ">&2; exit 1"),
            "malformed: x No solution found when resolving dependencies:\nbecause");
  EXPECT_EQ(code_of("echo 'error: no network' >&2; exit 2"),
            "input/output error: uv 0.13.9 failed while resolving the packages; it says:\nerror: no network");
  EXPECT_EQ(code_of("kill -9 $$"),
            "input/output error: uv 0.13.9 was ended by signal 9 while resolving the packages");
}

TEST_F(InstallerTest, ASignalEndsItAndIsRemembered) {
  const Installer uv =
      this->uv("trap 'echo ended >>" + root_.at("/log") + "; exit 1' TERM; touch " +
               root_.at("/started") + "; while :; do sleep 0.05; done");
  const pid_t self = getpid();
  std::thread sender([&] {
    while (!std::filesystem::exists(root_.at("/started"))) usleep(10'000);
    kill(self, SIGTERM);
  });
  const auto done = compile(uv, {}, interrupts_);
  sender.join();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::cancelled);
  EXPECT_EQ(log(), "ended\n");
  EXPECT_EQ(interrupts_.caught(), SIGTERM);
  const auto next = compile(uv, {}, interrupts_);  // nothing more is begun
  EXPECT_EQ(next.error().code, Code::cancelled);
}

TEST(PipRequirements, NameEachFileByItsHash) {
  formats::Pylock lock;
  formats::PylockPackage wheel{"torch", "2.7.1"};
  wheel.wheels.push_back({"t.whl", "https://index.example/t.whl", "", 1, {{"sha256", "ab"}}});
  formats::PylockPackage elsewhere = wheel;
  elsewhere.marker = "sys_platform == 'win32'";
  lock.packages = {wheel, elsewhere};
  EXPECT_EQ(*pip_requirements(lock, "3.11", "x86_64"),
            "torch @ https://index.example/t.whl --hash=sha256:ab\n");
  lock.packages[0].wheels.push_back(
      {"u.whl", "https://index.example/u.whl", "", 1, {{"sha256", "cd"}}});
  EXPECT_EQ(*pip_requirements(lock, "3.11", "x86_64"),
            "torch==2.7.1 --hash=sha256:ab --hash=sha256:cd\n");
  lock.packages[0].wheels.clear();
  EXPECT_EQ(pip_requirements(lock, "3.11", "x86_64").error().code, Code::unsupported);
}

}  // namespace
}  // namespace cufit::host
