// SPDX-License-Identifier: Apache-2.0
#include "host/process/process_owner.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <fstream>

#include <gtest/gtest.h>

#include "base/format.h"
#include "host/process/process_tree.h"
#include "unit/host/temporary_tree.h"

namespace cufit::host {
namespace process_owner_test {

const std::string k_id = "e0d51863af3b89d990370749541ea926418346f6f1c92c255e4862f6a1c04d80";
const std::string k_pod = "5f413373-db04-4240-a645-993a3fbcffc3";

struct Process {
  uint32_t pid = 4711;
  std::string cgroup = "0::/\n";
  std::string words = std::string("python\0train.py", 15);
  std::string variables;
  std::string name = "python";
  char state = 'S';
  uint64_t start_ticks = 5000;
  uint32_t uid = 1000;
};

// A machine as a folder, and a clock that stands until it is moved.
class Machine {
 public:
  Machine() {
    tree.write("/proc/stat", "cpu 1 2 3\nintr 99 1 2\nbtime 1700000000\nprocesses 5\n");
    tree.write("/etc/passwd", "root:x:0:0::/root:/bin/sh\nli:x:1000:1000:Li:/home/li:/bin/sh\n");
  }

  void start(const Process& one) const {
    const std::string at = format("/proc/{}", one.pid);
    tree.write(format("{}/task/{}/stat", at, one.pid),
               format("{} ({}) {} 1 1 1 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 9 0 {} 100 10 1\n",
                      one.pid, one.name, one.state, one.start_ticks));
    tree.write(at + "/status", format("Name:\tpython\nUid:\t{}\t0\t0\t0\nGid:\t5\n", one.uid));
    tree.write(at + "/cgroup", one.cgroup);
    tree.write(at + "/cmdline", one.words + std::string(1, '\0'));
    tree.write(at + "/environ", one.variables);
  }

  facts::ProcessOwner owner(uint32_t pid = 4711) {
    return read_process_owner(tree.host({{"HOME", "/home/li"}}), pid, names);
  }

  TemporaryTree tree;
  double seconds = 1000;
  std::vector<uint32_t> asked;
  OwnerNames names{OwnerNames::Sources{[this] { return seconds; },
                                       [this](uint32_t uid) -> std::optional<std::string> {
                                         asked.push_back(uid);
                                         if (uid == 4000) return std::nullopt;
                                         return uid == 2000 ? "ldap-wang" : "";
                                       }}};
};

TEST(ProcessOwner, OfAUsersSession) {
  Machine machine;
  Process one;
  one.cgroup = "0::/user.slice/user-1000.slice/session-3.scope\n";
  one.words = std::string("python\0my train.py\0--token\0abc\0\x1b[2J", 35);
  one.variables = std::string(
      "VIRTUAL_ENV=/a/venv\0CONDA_PREFIX=/b\0CUFIT_CLASS=cu126\0"
      "CUFIT_DOMAIN=/dev/shm/cufit-1000/share-team.domain\0SLURM_STEP_ID=1",
      120);
  machine.start(one);
  const facts::ProcessOwner owner = machine.owner();
  EXPECT_TRUE(owner.visible);
  EXPECT_EQ(owner.uid, 1000u);
  EXPECT_EQ(owner.user, "li");
  EXPECT_EQ(owner.command, "python my train.py --token *** ?[2J");
  EXPECT_EQ(owner.started, 1700000000.0 + 5000.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  EXPECT_EQ(owner.unit, "session-3.scope");
  EXPECT_EQ(owner.quota, "/dev/shm/cufit-1000/share-team.domain");
  EXPECT_EQ(owner.environment, "cu126");
  EXPECT_EQ(owner.python_environment, "/a/venv");
  EXPECT_EQ(owner.container + owner.pod + owner.slurm_job + owner.slurm_step, "");
  EXPECT_TRUE(machine.asked.empty());
}

TEST(ProcessOwner, OfDocker) {
  Machine machine;
  Process one;
  one.uid = 0;
  one.cgroup = "12:pids:/docker/" + k_id + "\n1:name=systemd:/docker/" + k_id + "\n";
  machine.start(one);
  EXPECT_EQ(machine.owner().container_name, "");
  // It is looked for again, at most every 30 s; the images are on another disk.
  machine.tree.write("/etc/docker/daemon.json", R"({"data-root":"/data/docker"})");
  machine.tree.write("/data/docker/containers/" + k_id + "/config.v2.json", R"({"Name":"/train"})");
  machine.seconds += 29;
  EXPECT_EQ(machine.owner().container_name, "");
  machine.seconds += 1;
  const facts::ProcessOwner owner = machine.owner();
  EXPECT_EQ(owner.user, "root");
  EXPECT_EQ(owner.runtime, "docker");
  EXPECT_EQ(owner.container, k_id);
  EXPECT_EQ(owner.container_name, "train");
  EXPECT_EQ(owner.unit, "");
}

TEST(ProcessOwner, OfAPod) {
  Machine machine;
  Process one;
  one.cgroup = "4:memory:/kubepods/burstable/pod" + k_pod + "/" + k_id + "\n";
  machine.start(one);
  machine.tree.write("/var/log/pods/lab_train-0_" + k_pod + "/main/0.log", "");
  machine.tree.link("/var/log/containers/train-0_lab_main-" + k_id + ".log", "/nowhere");
  machine.tree.write(
      "/run/containerd/io.containerd.runtime.v2.task/k8s.io/" + k_id + "/config.json", "{}");
  const facts::ProcessOwner owner = machine.owner();
  EXPECT_EQ(owner.runtime, "containerd");  // told by whose bundle it is
  EXPECT_EQ(owner.pod_uid, k_pod);
  EXPECT_EQ(owner.pod, "train-0");
  EXPECT_EQ(owner.pod_namespace, "lab");
  EXPECT_EQ(owner.container_name, "main");
  // No container of it is in the logs: the pod is named by its folder alone.
  one.pid = 4712;
  one.cgroup = "0::/kubepods/burstable/pod" + k_pod + "/crio-" + std::string(64, 'a');
  machine.start(one);
  EXPECT_EQ(machine.owner(4712).pod, "train-0");
  EXPECT_EQ(machine.owner(4712).runtime, "cri-o");
}

TEST(ProcessOwner, OfRootlessPodman) {
  Machine machine;
  Process one;
  one.cgroup = "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + k_id +
               ".scope/container\n";
  machine.start(one);
  machine.tree.write("/home/li/.local/share/containers/storage/overlay-containers/containers.json",
                     "[{\"id\":\"" + k_id + "\",\"names\":[\"epic_allen\"]}]");
  const facts::ProcessOwner owner = machine.owner();
  EXPECT_EQ(owner.runtime, "podman");
  EXPECT_EQ(owner.container_name, "epic_allen");
}

TEST(ProcessOwner, OfASlurmJob) {
  Machine machine;
  Process one;
  one.uid = 2000;
  one.cgroup = "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n";
  one.variables = std::string("SLURM_JOB_ID=8\0SLURM_STEP_ID=1", 30);
  machine.start(one);
  facts::ProcessOwner owner = machine.owner();
  EXPECT_EQ(owner.slurm_job + "." + owner.slurm_step, "7.0");
  EXPECT_EQ(owner.user, "ldap-wang");  // of the directory
  EXPECT_EQ(owner.unit, "");
  // Slurm without cgroups.
  one.pid = 4712;
  one.cgroup = "0::/system.slice/slurmd.service\n";
  one.variables = std::string("SLURM_JOB_ID=8\0SLURM_STEP_ID=4294967291", 39);
  machine.start(one);
  owner = machine.owner(4712);
  EXPECT_EQ(owner.slurm_job + "." + owner.slurm_step, "8.batch");
  one.pid = 4713;
  one.variables = std::string("SLURM_JOB_ID=8;rm\0SLURM_STEP_ID=1", 33);
  machine.start(one);
  EXPECT_EQ(machine.owner(4713).slurm_job, "");
}

TEST(ProcessOwner, NothingIsGuessed) {
  Machine machine;
  facts::ProcessOwner owner = machine.owner(99);
  EXPECT_FALSE(owner.visible);
  EXPECT_FALSE(owner.uid || owner.started);
  EXPECT_EQ(owner.command + owner.user + owner.unit, "");
  // Others' variables cannot be read; a user without a name; a process that is ending.
  Process one;
  one.uid = 3000;
  one.words = "";
  one.state = 'Z';
  machine.start(one);
  ASSERT_EQ(::unlink(machine.tree.at("/proc/4711/environ").c_str()), 0);
  ASSERT_EQ(::unlink(machine.tree.at("/proc/stat").c_str()), 0);
  machine.names = OwnerNames(OwnerNames::Sources{[&] { return machine.seconds; }, {}});
  owner = machine.owner();
  EXPECT_TRUE(owner.visible);
  EXPECT_EQ(owner.uid, 3000u);
  EXPECT_EQ(owner.user, "");
  EXPECT_EQ(owner.command, "[python]");
  EXPECT_FALSE(owner.started);
}

TEST(ProcessOwner, IsKeptWhileTheProcessIsTheSame) {
  Machine machine;
  Process one;
  one.cgroup = "0::/system.slice/a.service\n";
  machine.start(one);
  EXPECT_EQ(machine.owner().unit, "a.service");
  one.cgroup = "0::/system.slice/b.service\n";
  machine.start(one);
  machine.seconds += 30;
  EXPECT_EQ(machine.owner().unit, "a.service");
  machine.seconds += 31;  // moved into another cgroup: after a minute
  EXPECT_EQ(machine.owner().unit, "b.service");
  // An exec changes the name or the program.
  one.words = "other";
  one.name = "ot) Z (her";
  machine.start(one);
  EXPECT_EQ(machine.owner().command, "other");
  one.words = "third";
  machine.start(one);
  EXPECT_EQ(machine.owner().command, "other");
  machine.tree.link("/proc/4711/exe", "/usr/bin/third");
  machine.seconds += 5;
  EXPECT_EQ(machine.owner().command, "third");
  // The same pid, another process.
  one.cgroup = "0::/system.slice/c.service\n";
  one.start_ticks = 6000;
  machine.start(one);
  EXPECT_EQ(machine.owner().unit, "c.service");
  std::filesystem::remove_all(machine.tree.at("/proc/4711"));
  EXPECT_FALSE(machine.owner().visible);
}

// Its words and variables could hold the reader up.
TEST(ProcessOwner, OneThatHangsIsReadLater) {
  Machine machine;
  Process one;
  one.state = 'D';
  one.variables = "CUFIT_CLASS=cu126";
  machine.start(one);
  facts::ProcessOwner owner = machine.owner();
  EXPECT_EQ(owner.command + owner.environment, "[python]");
  EXPECT_EQ(owner.user, "li");
  one.state = 'R';
  machine.start(one);
  EXPECT_EQ(machine.owner().command, "python train.py");
  one.state = 'D';
  machine.start(one);
  machine.seconds += 61;
  owner = machine.owner();
  EXPECT_EQ(owner.command + " " + owner.environment, "python train.py cu126");
}

TEST(ProcessOwner, ADirectoryIsAskedSeldom) {
  Machine machine;
  Process one;
  one.uid = 3000;
  machine.start(one);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(machine.owner().user, "");
  EXPECT_EQ(machine.asked.size(), 1u);
  machine.seconds += 601;
  EXPECT_EQ(machine.owner().user, "");
  EXPECT_EQ(machine.asked.size(), 2u);
  // One that has not answered yet is asked again.
  one.uid = 4000;
  one.pid = 4712;
  machine.start(one);
  machine.owner(4712);
  machine.owner(4712);
  EXPECT_EQ(machine.asked.size(), 4u);
}

TEST(ProcessOwner, OfThisProcess) {
  const RealHost host;
  OwnerNames names;
  const auto pid = static_cast<uint32_t>(::getpid());
  const facts::ProcessOwner owner = read_process_owner(host, pid, names);
  EXPECT_TRUE(owner.visible);
  EXPECT_EQ(owner.uid, ::getuid());
  EXPECT_EQ(owner.user == "root", ::getuid() == 0);
  const std::string words = read_small("/proc/self/cmdline");
  EXPECT_TRUE(starts_with(owner.command, words.substr(0, words.find('\0')))) << owner.command;
  ASSERT_TRUE(owner.started);
  const auto now = static_cast<double>(::time(nullptr));
  EXPECT_LE(*owner.started, now + 2);
  EXPECT_GT(*owner.started, now - 24 * 3600);
  EXPECT_FALSE(read_process_owner(host, UINT32_MAX, names).visible);
}

TEST(ProcessOwner, AnswersOfTheNameService) {
  const UserLookup service = name_service();
  std::optional<std::string> name;
  for (int i = 0; i < 100 && !name; ++i) name = service(0);
  EXPECT_EQ(name, "root");
}

// A folder in which this user may make cgroups; empty where he may not.
std::string own_cgroup() {
  for (const std::string& root : {std::string("/sys/fs/cgroup"), std::string("/sys/fs/cgroup/pids"),
                                  std::string("/sys/fs/cgroup/freezer")}) {
    const std::string folder = root + format("/libpod-{}", k_id);
    if (::mkdir(folder.c_str(), 0755) != 0) continue;
    if (std::ifstream(folder + "/cgroup.procs").good()) return folder;
    ::rmdir(folder.c_str());
  }
  return {};
}

TEST(ProcessOwner, OfAProcessInACgroupOfItsOwn) {
  const std::string folder = own_cgroup();
  if (folder.empty()) GTEST_SKIP() << "no cgroup can be made by this user";
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/sleep", "/bin/sleep", "60", nullptr);
    ::_exit(127);
  }
  std::ofstream(folder + "/cgroup.procs") << child << std::flush;
  while (!starts_with(read_small(format("/proc/{}/cmdline", child)), "/bin/sleep")) ::usleep(1000);
  OwnerNames names;
  const facts::ProcessOwner owner =
      read_process_owner(RealHost(), static_cast<uint32_t>(child), names);
  EXPECT_EQ(owner.runtime, "podman");
  EXPECT_EQ(owner.container, k_id);
  EXPECT_EQ(owner.command, "/bin/sleep 60");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (int i = 0; i < 100 && ::rmdir(folder.c_str()) != 0; ++i) ::usleep(10000);
}

}  // namespace process_owner_test
}  // namespace cufit::host
