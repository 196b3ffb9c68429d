// SPDX-License-Identifier: Apache-2.0
// `cufit quota status`, `set` and `clear` on a described card, with processes under the guard.
#include <csignal>
#include <filesystem>

#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "guarded.h"

namespace cufit::test {
namespace {

using Json = nlohmann::json;

const std::string k_start = "init\ncontext 0\n";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class GuardQuota : public Guarded {
 protected:
  // A process that holds `mib` beside its context, until it is killed.
  pid_t holder(uint64_t mib) {
    const uint64_t wanted = used_mib() + 300 + mib;
    pid_t child = start(k_start + "alloc a " + std::to_string(mib) + "M\nsleep 60");
    for (int i = 0; i < 2000 && used_mib() < wanted; ++i) usleep(5000);
    EXPECT_EQ(used_mib(), wanted);
    return child;
  }
  static void end(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  Json status() {
    const Ran ran = cufit("\"$CUFIT\" quota status --json \"$DIR/domain\"");
    EXPECT_EQ(ran.code(), 0) << ran.err;
    return Json::parse(ran.out, nullptr, false);
  }
};

TEST_F(GuardQuota, StatusTellsTheLivingAndWhatNvmlSays) {
  limit(2000);
  const pid_t first = holder(500), second = holder(100);
  Json said = status();
  EXPECT_EQ(said["schema"], "cufit.quota/1");
  EXPECT_EQ(said["backend"], "guard");
  said = said["domains"][0];
  EXPECT_EQ(said["devices"][0]["index"], 0);
  EXPECT_EQ(said["devices"][0]["limit_bytes"], 2000 * k_mib);
  EXPECT_EQ(said["devices"][0]["used_bytes"], 1200 * k_mib);
  EXPECT_EQ(said["devices"][0]["nvml_bytes"], 1200 * k_mib);
  EXPECT_EQ(said["devices"][0]["refusals"], 0);
  ASSERT_EQ(said["processes"].size(), 2u);  // the largest first
  EXPECT_EQ(said["processes"][0]["pid"], first);
  EXPECT_EQ(said["processes"][1]["used_bytes"], 400 * k_mib);
  end(first), end(second);
}

// 800 MiB of a limit of 1024: what a killed process held is nobody's.
TEST_F(GuardQuota, DeadSlotsAreNotCounted) {
  const pid_t child = holder(500);
  Json said = status()["domains"][0];
  EXPECT_EQ(said["devices"][0]["used_bytes"], 800 * k_mib);
  EXPECT_EQ(said["devices"][0]["nvml_bytes"], 800 * k_mib);
  EXPECT_EQ(said["devices"][0]["peak_bytes"], 800 * k_mib);
  ASSERT_EQ(said["processes"].size(), 1u);
  EXPECT_EQ(said["processes"][0]["pid"], child);
  EXPECT_EQ(said["processes"][0]["name"], "guard_actor");
  EXPECT_EQ(said["processes"][0]["used_bytes"], 800 * k_mib);
  end(child);
  EXPECT_EQ(used_mib(), 800u);  // still in the file
  said = status()["domains"][0];
  EXPECT_EQ(said["devices"][0]["used_bytes"], 0);
  EXPECT_EQ(said["devices"][0]["nvml_bytes"], nullptr);
  EXPECT_EQ(said["processes"].size(), 0u);
  EXPECT_EQ(said["dead_slots"], 1);
}

// A program that closed all its descriptors has lost its lock and holds its memory.
TEST_F(GuardQuota, AProcessThatLostItsLockIsCounted) {
  pid_t child = start(k_start + "alloc a 500M\nclosefds\nsleep 60");
  for (int i = 0; i < 2000 && used_mib() < 800; ++i) usleep(5000);
  usleep(200000);
  EXPECT_EQ(status()["domains"][0]["devices"][0]["used_bytes"], 800 * k_mib);
  end(child);
}

TEST_F(GuardQuota, NvmlThatListsNoProcessesIsSaid) {
  describe("no_process_memory = 1");
  const pid_t child = holder(500);
  EXPECT_EQ(status()["domains"][0]["devices"][0]["nvml_bytes"], nullptr);
  const Ran ran = cufit("\"$CUFIT\" quota status \"$DIR/domain\"");
  EXPECT_TRUE(has(ran.out, "NVML: does not answer for this GPU")) << ran.out;
  EXPECT_TRUE(has(ran.out, "a fence for colleagues")) << ran.out;
  end(child);
}

TEST_F(GuardQuota, ForeignAndDamagedFilesAreSaidAndSkipped) {
  std::filesystem::create_directories(path("run"));
  domain.name = "team";
  write_domain();
  std::filesystem::copy(path("domain"), path("run/team"));
  write_bytes(path("run/junk"), "not a domain");
  write_bytes(path("run/short"), read_bytes(path("domain")).substr(0, 5000));
  std::filesystem::create_symlink(path("domain"), path("run/link"));
  const Ran ran = cufit("\"$CUFIT\" quota status --json");
  const Json said = Json::parse(ran.out, nullptr, false);
  EXPECT_EQ(ran.code(), 0);
  size_t team = 0, skipped = 0;
  for (const Json& one : said["domains"]) team += one["path"] == path("run/team");
  for (const Json& one : said["skipped"])
    skipped += has(one["path"].get<std::string>(), path("run/"));
  EXPECT_EQ(team, 1u);
  EXPECT_EQ(skipped, 3u) << ran.out;
  EXPECT_EQ(cufit("\"$CUFIT\" quota status team >/dev/null").code(), 0);
  const Ran none = cufit("\"$CUFIT\" quota status nobodys");
  EXPECT_EQ(none.code(), 3);
  EXPECT_TRUE(has(none.err, "no quota domain `nobodys` here")) << none.err;
}

class GuardQuotaSet : public GuardQuota {
 protected:
  void SetUp() override {
    GuardQuota::SetUp();
    environment = {"CUFIT_TEST_MACHINE=" + path("root")};
    cgroup("system.slice/docker-" + id_ + ".scope");
    cgroup("user.slice/job");
    std::filesystem::create_directories(path("root/proc/42"));
    write_bytes(path("root/proc/42/cgroup"), "0::/user.slice/job\n");
  }
  void cgroup(const std::string& name) {
    std::filesystem::create_directories(path("root/sys/fs/cgroup/" + name));
    write_bytes(path("root/sys/fs/cgroup/" + name + "/cgroup.procs"), "");
  }
  const std::string id_ = "0123456789ab" + std::string(52, 'c');
};

TEST_F(GuardQuotaSet, DryRunChangesNothing) {
  const Ran ran =
      cufit("\"$CUFIT\" quota set --container 0123456789ab --hard 3G --soft 1G --dry-run");
  EXPECT_EQ(ran.code(), 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "/sys/fs/cgroup/system.slice/docker-" + id_ + ".scope"));
  EXPECT_TRUE(has(ran.out, "hard 3.00 GiB, soft 1.00 GiB")) << ran.out;
  EXPECT_TRUE(has(ran.out, "now no limit")) << ran.out;
  EXPECT_TRUE(has(cufit("\"$CUFIT\" quota clear --pid 42 --dry-run").out, "now no limit"));
}

// What `quota plan` prints for the kernel's limit is taken as it is; PATH and SIZE stand for what only the reader knows.
TEST_F(GuardQuotaSet, TheCommandOfThePlan) {
  describe("driver = 615.36");
  std::filesystem::create_directories(path("root/proc/driver/nvidia"));
  write_bytes(path("root/proc/driver/nvidia/version"),
              "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  615.36  Release Build\n");
  write_bytes(path("root/sys/fs/cgroup/cgroup.controllers"), "cpu misc dmem\n");
  std::filesystem::create_directories(path("root/proc/self"));
  write_bytes(path("root/proc/self/cgroup"), "0::/user.slice/job\n");
  write_bytes(path("root/proc/self/mountinfo"),
              "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
  const Ran plan = cufit("\"$CUFIT\" quota plan --json");
  const Json answer = Json::parse(plan.out, nullptr, false);
  std::string printed;
  for (const Json& one : answer["rejected"])
    if (one["backend"] == "kernel") printed = one["to_enable"].get<std::string>();
  const std::string start = "`sudo cufit ";
  ASSERT_EQ(printed.substr(0, start.size()), start) << plan.out;
  std::string command = printed.substr(start.size(), printed.find('`', 1) - start.size());
  command.replace(command.find("PATH"), 4, "user.slice/job");
  command.replace(command.find("SIZE"), 4, "3G");
  const Ran ran = cufit("\"$CUFIT\" " + command + " --dry-run");
  EXPECT_EQ(ran.code(), 0) << command << ran.err;
  EXPECT_TRUE(has(ran.out, "hard 3.00 GiB, soft 0")) << ran.out;
}

TEST_F(GuardQuotaSet, SetsAndClears) {
  if (geteuid() != 0) GTEST_SKIP() << "only root sets limits";
  const Ran set = cufit("\"$CUFIT\" quota set --pid 42 --hard 3G");
  EXPECT_EQ(set.code(), 0) << set.err;
  EXPECT_TRUE(has(set.out, "no limit before, hard 3.00 GiB, soft 0")) << set.out;
  const Ran clear = cufit("\"$CUFIT\" quota clear --cgroup user.slice/job");
  EXPECT_EQ(clear.code(), 0) << clear.err;
  EXPECT_TRUE(has(clear.out, "hard 3.00 GiB")) << clear.out;
  EXPECT_TRUE(has(clear.out, "no limit now")) << clear.out;
}

// A GPU that refuses: those before it have their old limit again.
TEST_F(GuardQuotaSet, AllGpusOrNone) {
  if (geteuid() != 0) GTEST_SKIP() << "only root sets limits";
  add_card("");
  EXPECT_EQ(cufit("\"$CUFIT\" quota set --pid 42 --hard 2G").code(), 0);
  describe("");
  add_card("no_limit = 1");
  const Ran ran = cufit("\"$CUFIT\" quota set --pid 42 --hard 1G");
  EXPECT_EQ(ran.code(), 1) << ran.err;
  EXPECT_TRUE(has(ran.out, "Nothing was set on /sys/fs/cgroup/user.slice/job")) << ran.out;
  EXPECT_TRUE(has(ran.out, "now hard 2.00 GiB")) << ran.out;
  EXPECT_TRUE(has(ran.out, "nvmlDeviceSetMemoryLimits_v1 refused")) << ran.out;
  const Ran now = cufit("\"$CUFIT\" quota clear --pid 42 --dry-run");
  EXPECT_TRUE(has(now.out, "hard 2.00 GiB")) << now.out;
}

TEST_F(GuardQuotaSet, WhatIsNotThereIsSaid) {
  const auto says = [&](const std::string& arguments, int code, const std::string& text) {
    const Ran ran = cufit("\"$CUFIT\" quota " + arguments);
    EXPECT_EQ(ran.code(), code) << arguments << ": " << ran.err;
    EXPECT_TRUE(has(ran.err, text)) << arguments << ": " << ran.err;
  };
  says("set --container fedcba987654 --hard 1G --dry-run", 3, "no running container of this id");
  says("set --container webserver --hard 1G --dry-run", 2, "12 to 64 digits of its id");
  says("set --pid 43 --hard 1G --dry-run", 3, "no such process");
  cgroup("../escape");
  says("set --cgroup ../escape --hard 1G --dry-run", 2, "no such cgroup");
  says("set --cgroup user.slice/job --dry-run", 2, "needs `--hard SIZE`");
  says("set --cgroup user.slice/job --hard 1G --soft 2G --dry-run", 2, "more than `--hard`");
  says("set --cgroup user.slice/job --hard much --dry-run", 2, "a size in GiB");
  says("set --cgroup user.slice/job --hard 5G --dry-run", 2, "more than any GPU here has: 4.0 GiB");
  says("clear --dry-run", 2, "one of `--cgroup PATH`");
  describe("no_memory_limits = 1");
  const Ran ran = cufit("\"$CUFIT\" quota clear --pid 42 --dry-run");
  EXPECT_EQ(ran.code(), 1);
  EXPECT_TRUE(has(ran.out, "nvmlDeviceGetMemoryLimits_v1 refused")) << ran.out;
}

}  // namespace
}  // namespace cufit::test
