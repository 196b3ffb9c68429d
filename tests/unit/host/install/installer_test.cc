// SPDX-License-Identifier: Apache-2.0
#include "host/install/installer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <gtest/gtest.h>

#include "base/format.h"
#include "support/fake_root.h"

namespace cufit::host {
namespace installer_test {

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
      program("/bin/python3", "case \"$3\" in uv) echo uv 0.9.1;; *) exit 1;; esac");
  const auto module = find_uv(host({}), interrupts_);
  ASSERT_TRUE(module) << module.error().text();
  EXPECT_EQ(join(module->command, " "), python + " -m uv");
  program("/bin/python3", "case \"$3\" in pip) echo pip 25.1 from x;; *) exit 1;; esac");
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
            "input/output error: uv 0.13.9 failed while resolving the packages; it says:\nerror: "
            "no network");
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

TEST_F(InstallerTest, CondaIsFoundUnderItsNames) {
  program("/bin/micromamba", "echo 2.3.3");
  program("/bin/pixi", "echo pixi 0.72.0");
  EXPECT_EQ(find_conda(host({}), interrupts_)->name(), "micromamba 2.3.3");
  EXPECT_EQ(find_pixi(host({}), interrupts_)->name(), "pixi 0.72.0");
  program("/bin/mamba", "echo mamba 1.5.8; echo conda 24.1.2");
  EXPECT_EQ(find_conda(host({}), interrupts_)->name(), "mamba 1.5.8");
  program("/bin/conda", "echo conda 25.5.1");
  EXPECT_EQ(find_conda(host({}), interrupts_)->name(), "conda 25.5.1");
  // A shell that set conda up knows it as a function, and the program by this variable.
  const std::string other = program("/opt/conda", "echo conda 4.14.0");
  EXPECT_EQ(find_conda(host({{"CONDA_EXE", other}}), interrupts_)->version, "4.14.0");
  EXPECT_FALSE(find_conda(host({{"CUFIT_CONDA", "/no/such"}}), interrupts_));
  const auto none = find_conda(host({{"PATH", "/nowhere"}}), interrupts_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::not_found);
}

TEST_F(InstallerTest, CondaGivesPythonAndPipWhereThereIsNoUv) {
  const std::string log_to = " >>" + root_.at("/log");
  Installer conda{Installer::Kind::conda,
                  {program("/bin/conda", "echo \"$@\"" + log_to + "; mkdir -p " +
                                             root_.at("/envs/.a.partial-1"))},
                  "25.5.1",
                  "conda"};
  InstallRequest request;
  request.folder = root_.at("/envs/.a.partial-1");
  request.final_folder = root_.at("/envs/a");
  request.python = "3.11";
  request.index.offline = true;
  const auto made = make_conda_environment(conda, request, true, interrupts_);
  EXPECT_TRUE(made) << made.error().text();
  EXPECT_EQ(log(), "create --yes --prefix " + request.folder +
                       " --override-channels --channel conda-forge --no-default-packages --offline "
                       "python=3.11 pip\n");
  request.python = "3.13t";
  const auto threads = make_conda_environment(conda, request, true, interrupts_);
  ASSERT_FALSE(threads);
  EXPECT_EQ(threads.error().code, Code::unsupported);
}

// What is quoted of a failure is the failure; on a terminal uv shows how far it is.
TEST_F(InstallerTest, IsQuietWhereNobodyWatches) {
  InstallRequest request;
  request.folder = root_.at("/envs/.a.partial-1");
  request.pylock = "pylock.a.toml";
  const Installer tool =
      uv("case \"$*\" in *' --quiet'*) ;; *) echo 'Downloading torch (1.1GiB)' >&2;; esac; echo "
         "'error: Hash mismatch' >&2; exit 1");
  const auto failed = install(tool, request, {}, interrupts_);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().text(),
            "uv 0.13.9 failed while installing the packages; it says:\nerror: Hash mismatch");
  const Installer shown = uv("case \"$*\" in *' --quiet'*) exit 1;; esac");
  request.show = true;
  EXPECT_TRUE(install(shown, request, {}, interrupts_));
}

// In an environment that is conda's, what conda put there is not taken away.
TEST_F(InstallerTest, SyncsOnlyEnvironmentsOfItsOwn) {
  InstallRequest request;
  request.folder = root_.at("/envs/.a.partial-1");
  request.final_folder = root_.at("/envs/a");
  request.pylock = "pylock.a.toml";
  const Installer tool = uv("echo \"$1 $2 $3 site $PYTHONNOUSERSITE\" >>" + root_.at("/log"));
  ASSERT_TRUE(install(tool, request, {}, interrupts_));
  request.in_conda = true;
  root_.file("/envs/.a.partial-1/bin/tool", "#!" + request.folder + "/bin/python\n");
  ASSERT_TRUE(install(tool, request, {}, interrupts_));
  EXPECT_EQ(log(), "pip sync pylock.a.toml site \npip install --no-deps site 1\n");
  std::ifstream in(root_.at("/envs/.a.partial-1/bin/tool"));
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "#!" + request.final_folder + "/bin/python");
}

TEST(Relocate, KeepsEveryOffsetOfAProgramAndNoOldPath) {
  test::FakeRoot root;
  const std::string from = root.at("/envs/.a.partial-1"), to = root.at("/envs/a");
  const auto read = [&](const std::string& path) {
    std::ifstream in(root.at(path), std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  };
  using namespace std::string_literals;
  const std::string program = "\x7f"s + "ELF\0"s + from + "/a:" + from + "/b\0next\0"s + from;
  const std::string script = "#!" + from + "/bin/python\n# " + from + "\n";
  root.file("/p/program", program).file("/p/script", script).file("/p/byte.pyc", "\0"s + from);
  root.file("/p/other", "nothing of it").mode("/p/script", 0755);
  // A file with another link, as the cache of packages has them.
  std::filesystem::create_hard_link(root.at("/p/script"), root.at("/cached"));
  ASSERT_TRUE(relocate(root.at("/p"), from, to));
  const std::string moved = read("/p/program");
  ASSERT_EQ(moved.size(), program.size());
  const size_t first = 5;
  EXPECT_EQ(std::string(moved.c_str() + first), to + "/a:" + to + "/b");
  EXPECT_EQ(moved.find("next"), program.find("next"));
  EXPECT_EQ(std::string(moved.c_str() + program.find("next") + 5), to);
  EXPECT_EQ(read("/p/script"), "#!" + to + "/bin/python\n# " + to + "\n");
  EXPECT_EQ(std::filesystem::status(root.at("/p/script")).permissions(),
            static_cast<std::filesystem::perms>(0755));
  EXPECT_EQ(read("/cached"), script);
  EXPECT_EQ(read("/p/other"), "nothing of it");
  EXPECT_FALSE(std::filesystem::exists(root.at("/p/byte.pyc")));
  EXPECT_FALSE(relocate(root.at("/p"), to, from));
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

}  // namespace installer_test
}  // namespace cufit::host
