// SPDX-License-Identifier: Apache-2.0
#include "host/quota/domain_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/abi/quota_domain.h"
#include "base/format.h"
#include "host/quota/quota_folder.h"
#include "support/fake_root.h"

namespace cufit::host {
namespace domain_file_test {

formats::QuotaDomain wish(uint64_t limit = 1000) {
  formats::QuotaDomain out;
  out.slot_count = 8;
  out.default_limit_bytes = limit;
  return out;
}

class DomainFileTest : public ::testing::Test {
 protected:
  DomainFileTest() { root_.folder("/q").mode("/q", 0700); }
  std::string folder() const { return root_.at("/q"); }
  std::string share_path() const { return folder() + "/share-team.domain"; }
  Result<DomainFile> open(const std::string& share, uint64_t limit = 1000) const {
    return open_domain_file(folder(), share, wish(limit));
  }
  // As long ago as that: a youth protects what is shared.
  static void age(const std::string& path, int seconds) {
    timespec times[2] = {{::time(nullptr) - seconds, 0}, {::time(nullptr) - seconds, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  size_t files() const {
    size_t out = 0;
    for (const auto& each : std::filesystem::directory_iterator(folder()))
      out += each.path().extension() == ".domain";
    return out;
  }
  test::FakeRoot root_;
};

// Another process that has the domain in its variables, as a program of a launch has.
class Program {
 public:
  explicit Program(const std::string& domain) {
    pid_ = ::fork();
    if (pid_ == 0) {
      const std::string variable = "CUFIT_DOMAIN=" + domain;
      const char* command[] = {"sleep", "100", nullptr};
      const char* variables[] = {variable.c_str(), nullptr};
      ::execve("/bin/sleep", const_cast<char**>(command), const_cast<char**>(variables));
      ::_exit(127);
    }
    // It has become sleep.
    for (int i = 0; i < 500; ++i) {
      std::ifstream in("/proc/" + std::to_string(pid_) + "/comm");
      std::string name;
      in >> name;
      if (name == "sleep") break;
      ::usleep(10'000);
    }
  }
  ~Program() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

 private:
  pid_t pid_;
};

TEST_F(DomainFileTest, AFileOfThisLaunchAlone) {
  auto file = open("");
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->joined);
  struct stat status {};
  ASSERT_EQ(::stat(file->path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  // No holes: a full file system fails here and not in the user's program.
  EXPECT_GE(static_cast<uint64_t>(status.st_blocks) * 512, static_cast<uint64_t>(status.st_size));
  leave_domain(*file);
  EXPECT_EQ(files(), 0u);
}

TEST_F(DomainFileTest, AnUnusedShareIsMadeAnewAndAUsedOneJoined) {
  auto first = open("team", 1000);
  ASSERT_TRUE(first);
  const Program program(first->path);
  first->launching.reset();
  auto second = open("team", 2000);
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->joined);
  EXPECT_EQ(second->domain.default_limit_bytes, 1000u);
  leave_domain(*second);
  EXPECT_EQ(files(), 1u) << "others use it";
}

TEST_F(DomainFileTest, TheLimitOfALaunchThatIsOverDoesNotCount) {
  {
    auto first = open("team", 1000);
    ASSERT_TRUE(first);
  }
  auto second = open("team", 2000);
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->joined);
  EXPECT_EQ(second->domain.default_limit_bytes, 2000u);
}

// Between a launcher's file and its program nobody has the domain in his variables yet.
TEST_F(DomainFileTest, ALauncherThatHasNotStartedItsProgramIsSeen) {
  int ready[2], done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto file = open("team", 1000);
    char byte = file ? 'y' : 'n';
    (void)!::write(ready[1], &byte, 1);
    (void)!::read(done[0], &byte, 1);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  auto second = open("team", 2000);
  (void)!::write(done[1], "x", 1);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->joined);
}

// All at once: one limit for all of them.
// A program that has not come to CUDA holds no lock, and its variables may be gone (setproctitle) or of another namespace.
TEST_F(DomainFileTest, AShareLivesAsLongAsALaunchThatHasIt) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t launch = ::fork();
  if (launch == 0) {
    auto domain = open("team", 2000);
    if (domain) domain->launching.reset();  // as at exec
    (void)!::write(ready[1], domain ? "y" : "n", 1);
    ::pause();
    ::_exit(0);
  }
  char told = 0;
  ASSERT_EQ(::read(ready[0], &told, 1), 1);
  ASSERT_EQ(told, 'y');
  age(share_path(), 3600);
  remove_unused_domains({folder()});
  EXPECT_EQ(files(), 1u);
  auto joined = open("team", 1000);
  ASSERT_TRUE(joined);
  EXPECT_TRUE(joined->joined);
  EXPECT_EQ(joined->domain.default_limit_bytes, 2000u);
  leave_domain(*joined);
  EXPECT_EQ(files(), 1u);
  ::kill(launch, SIGKILL);
  ::waitpid(launch, nullptr, 0);
  remove_unused_domains({folder()});
  EXPECT_EQ(files(), 0u);
  for (const auto& each : std::filesystem::directory_iterator(folder()))
    EXPECT_EQ(each.path().filename().string().find(".by-"), std::string::npos) << each.path();
  ::close(ready[0]);
  ::close(ready[1]);
}

// Nobody waits for ever for a start that was stopped.
TEST_F(DomainFileTest, ALockThatIsHeldIsSaidAfterAWhile) {
  const int file = ::open((folder() + "/lock").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::flock(file, LOCK_EX), 0);
  const auto domain = open("");
  ASSERT_FALSE(domain);
  EXPECT_NE(domain.error().what.find("/lock"), std::string::npos);
  ::close(file);
}

TEST_F(DomainFileTest, WhatAKilledStartLeftBetweenWritingAndRenamingGoes) {
  root_.file("/q/run-1-2-3.domain.AbCdEf", "half").file("/q/run-1-2-3.domain.Young1", "half");
  age(folder() + "/run-1-2-3.domain.AbCdEf", 7200);
  remove_unused_domains({folder()});
  EXPECT_FALSE(std::filesystem::exists(folder() + "/run-1-2-3.domain.AbCdEf"));
  EXPECT_TRUE(std::filesystem::exists(folder() + "/run-1-2-3.domain.Young1"));
}

TEST_F(DomainFileTest, ManyLaunchesOfOneNameHaveOneLimit) {
  constexpr int k_launches = 24;
  int answers[2], done[2];
  ASSERT_EQ(::pipe(answers), 0);
  ASSERT_EQ(::pipe(done), 0);
  for (int i = 0; i < k_launches; ++i) {
    if (::fork() != 0) continue;
    ::close(done[1]);
    auto file = open("team", 1000 + static_cast<uint64_t>(i));
    const uint64_t limit = file ? file->domain.default_limit_bytes : 0;
    (void)!::write(answers[1], &limit, sizeof limit);
    char byte = 0;
    (void)!::read(done[0], &byte, 1);  // until all have answered
    ::_exit(0);
  }
  uint64_t first = 0;
  for (int i = 0; i < k_launches; ++i) {
    uint64_t limit = 0;
    ASSERT_EQ(::read(answers[0], &limit, sizeof limit), ssize_t(sizeof limit));
    if (i == 0) first = limit;
    EXPECT_EQ(limit, first);
    EXPECT_GE(limit, 1000u);
  }
  ::close(done[1]);
  for (int i = 0; i < k_launches; ++i) ::wait(nullptr);
}

TEST_F(DomainFileTest, DamagedAndInUseIsAnErrorDamagedAndUnusedIsMadeAnew) {
  root_.file("/q/share-team.domain", "rubbish").mode("/q/share-team.domain", 0600);
  {
    const Program program(share_path());
    const auto file = open("team");
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, Code::malformed);
  }
  EXPECT_TRUE(open("team"));
}

TEST_F(DomainFileTest, WhatIsNotOursIsNotTouched) {
  root_.file("/other", "kept");
  root_.link("/q/share-team.domain", root_.at("/other"));
  EXPECT_FALSE(open("team"));
  ASSERT_EQ(::unlink(share_path().c_str()), 0);
  root_.file("/q/share-team.domain", "x").mode("/q/share-team.domain", 0666);
  EXPECT_FALSE(open("team")) << "others may write to it";
  ASSERT_EQ(::unlink(share_path().c_str()), 0);
  ASSERT_EQ(::mkfifo(share_path().c_str(), 0600), 0);
  EXPECT_FALSE(open("team"));
  if (::geteuid() == 0) {
    ASSERT_EQ(::unlink(share_path().c_str()), 0);
    root_.file("/q/share-team.domain", "x").mode("/q/share-team.domain", 0600);
    ASSERT_EQ(::chown(share_path().c_str(), 65534, 65534), 0);
    const auto file = open("team");
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, Code::no_permission);
  }
  age(share_path(), 1000);
  remove_unused_domains({folder()});
  EXPECT_EQ(files(), 1u);
}

TEST_F(DomainFileTest, TheSweepTakesWhatIsOverAndNothingElse) {
  // A launch that is over: a pid that is ours, with another start.
  const std::string launch = this_launch();
  const size_t space = launch.rfind('-');
  const std::string pid = std::to_string(::getpid());
  root_.file("/q/run-" + pid + "-1" + launch.substr(space) + ".domain", "x");
  root_.file("/q/run-" + launch + ".domain", "lives");
  root_.file("/q/run-" + pid + "-1-4.domain", "of a container");
  root_.file("/q/share-young.domain", "x");
  root_.file("/q/share-old.domain", "x");
  root_.file("/q/share-used.domain", "x");
  root_.file("/q/notes.txt", "x");
  for (const auto& each : std::filesystem::directory_iterator(folder()))
    ::chmod(each.path().c_str(), 0600);
  age(folder() + "/share-old.domain", 1000);
  age(folder() + "/share-used.domain", 1000);
  const Program program(folder() + "/share-used.domain");
  remove_unused_domains({folder()});
  EXPECT_EQ(files(), 4u);
  for (const char* gone : {"/share-old.domain"})
    EXPECT_FALSE(std::filesystem::exists(folder() + gone));
  EXPECT_TRUE(std::filesystem::exists(folder() + "/run-" + launch + ".domain"));
  EXPECT_TRUE(std::filesystem::exists(folder() + "/run-" + pid + "-1-4.domain"));
  EXPECT_TRUE(std::filesystem::exists(folder() + "/notes.txt"));
}

TEST_F(DomainFileTest, TheSweepGoesThroughAllFoldersOfThisUser) {
  for (const char* name : {"/r", "/open"})
    root_.file(std::string(name) + "/share-old.domain", "x")
        .mode(std::string(name) + "/share-old.domain", 0600);
  root_.mode("/r", 0700).mode("/open", 0777);
  for (const char* name : {"/r", "/open"}) age(root_.at(name) + "/share-old.domain", 1000);
  remove_unused_domains({root_.at("/none"), folder(), root_.at("/open"), root_.at("/r")});
  EXPECT_FALSE(std::filesystem::exists(root_.at("/r/share-old.domain")));
  EXPECT_TRUE(std::filesystem::exists(root_.at("/open/share-old.domain"))) << "others may write it";
  EXPECT_FALSE(std::filesystem::exists(root_.at("/none")));
}

TEST_F(DomainFileTest, WhyAMemberCannotBeWrittenIsSaid) {
  root_.file("/q/share-team.domain.by-" + this_launch() + "/x", "");
  const auto domain = open("team");
  ASSERT_FALSE(domain);
  EXPECT_NE(domain.error().what.find(std::strerror(EISDIR)), std::string::npos)
      << domain.error().what;
  EXPECT_EQ(files(), 0u);
}

// The end of a daemon takes seconds; the folder is free meanwhile.
TEST_F(DomainFileTest, ASweepKeepsNobodyWaiting) {
  root_.file("/bin/nvidia-cuda-mps-control", "#!/bin/sh\n: >" + root_.at("/told") + "\nsleep 4\n")
      .mode("/bin/nvidia-cuda-mps-control", 0755);
  root_.folder("/q/mps-of-nobody/pipe");
  const std::string control = folder() + "/mps-of-nobody/pipe/control";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, control.c_str(), sizeof address.sun_path - 1);
  const int listening = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listening, 4), 0);
  const pid_t sweep = ::fork();
  if (sweep == 0) {
    const std::string path = root_.at("/bin") + ":" + std::getenv("PATH");
    ::setenv("PATH", path.c_str(), 1);
    remove_unused_domains({folder()});
    ::_exit(0);
  }
  for (int i = 0; i < 1000 && !std::filesystem::exists(root_.at("/told")); ++i) ::usleep(10'000);
  ASSERT_TRUE(std::filesystem::exists(root_.at("/told")));
  auto domain = open("");
  EXPECT_TRUE(domain);
  int status = 0;
  EXPECT_EQ(::waitpid(sweep, &status, WNOHANG), 0) << "the sweep is not over yet";
  if (domain) leave_domain(*domain);
  ::kill(sweep, SIGKILL);
  ::waitpid(sweep, &status, 0);
  ::close(listening);
}

TEST_F(DomainFileTest, OldRecordingsGo) {
  for (int i = 0; i < 12; ++i) root_.file("/q/rings/" + std::to_string(i) + "/1.ring", "x");
  root_.folder("/q/rings/empty");
  root_.mode("/q/rings", 0700);
  ASSERT_TRUE(make_ring_folder(folder()));
  remove_unused_domains({folder()});
  size_t left = 0;
  for (const auto& each : std::filesystem::directory_iterator(folder() + "/rings")) {
    ++left;
    EXPECT_NE(each.path().filename(), "empty");
  }
  EXPECT_EQ(left, 9u) << "eight, and the one of this launch";
}

TEST(QuotaFolder, OnlyAFolderOfOnesOwn) {
  test::FakeRoot root;
  root.folder("/run");
  EXPECT_TRUE(own_folder(root.at("/new")));
  EXPECT_TRUE(own_folder(root.at("/new"))) << "it is there";
  root.file("/file", "").link("/link", root.at("/new")).folder("/open").mode("/open", 0777);
  EXPECT_FALSE(own_folder(root.at("/file")));
  EXPECT_FALSE(own_folder(root.at("/link"))) << "a link could lead anywhere";
  EXPECT_FALSE(own_folder(root.at("/open")));
  EXPECT_FALSE(own_folder(root.at("/not/there")));
  const RealHost with("/", {{"XDG_RUNTIME_DIR", root.at("/run")}});
  EXPECT_EQ(quota_folders(with).back(), root.at("/run/cufit"));
  EXPECT_NE(quota_folders(with).front(), root.at("/run/cufit")) << "a session's folder is last";
  const RealHost named(
      "/", {{"XDG_RUNTIME_DIR", root.at("/run")}, {"CUFIT_RUN_DIR", root.at("/named")}});
  EXPECT_EQ(quota_folders(named).front(), root.at("/named"));
  EXPECT_EQ(quota_folder(named).value_or(""), root.at("/named"));
  for (const std::string& bad : {std::string("relative"), root.at("/file"), root.at("/link")})
    EXPECT_FALSE(quota_folder(RealHost("/", {{"CUFIT_RUN_DIR", bad}}))) << bad << ": no other";
  // Of sudo: what root makes there its owner could not use.
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(root.at("/run").c_str(), 65534, 65534), 0);
    EXPECT_NE(quota_folders(with).back(), root.at("/run/cufit"));
    ASSERT_EQ(::chown(root.at("/new").c_str(), 65534, 65534), 0);
    const auto taken = quota_folder(RealHost("/", {{"CUFIT_RUN_DIR", root.at("/new")}}));
    ASSERT_FALSE(taken);
    EXPECT_TRUE(contains(taken.error().what, "belongs to user 65534")) << taken.error().what;
  }
  for (const char* path : {"relative", "", "/not/there", "/dev/null"}) {
    const RealHost without("/", {{"XDG_RUNTIME_DIR", path}});
    for (const std::string& folder : quota_folders(without))
      EXPECT_EQ(folder.find("cufit-"), folder.rfind('/') + 1) << path;
  }
}

TEST(QuotaFolder, ALaunchKnowsItself) {
  EXPECT_EQ(launch_state(this_launch()), LaunchState::lives);
  for (const char* text : {"", "1", "1-2", "1-2-3-4", "x-1-2", "0-1-2", "4294967297-1-2", "1--x"})
    EXPECT_EQ(launch_state(text), LaunchState::no_launch) << text;
  EXPECT_EQ(launch_state("1-1-1"), LaunchState::elsewhere);
  const std::string launch = this_launch();
  EXPECT_EQ(launch_state("2147483600" + launch.substr(launch.find('-'))), LaunchState::gone);
}

}  // namespace domain_file_test
}  // namespace cufit::host
