// SPDX-License-Identifier: Apache-2.0
#include "host/probe.h"

#include <gtest/gtest.h>

#include <functional>

#include "host/machine/memory_limit.h"
#include "support/machines.h"

namespace cufit::host {
namespace system_test {

using test::FakeRoot;

facts::SystemFacts read(const FakeRoot& root, std::map<std::string, std::string> variables = {}) {
  facts::Facts facts;
  read_system(root.host(std::move(variables)), facts);
  return facts.system;
}

TEST(System, ReadsABareDebian) {
  FakeRoot root;
  test::add_proc(root);
  test::add_bare_host(root);
  test::add_glibc(root);
  root.file("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
            std::string("\6\0\0\0\1", 5));
  facts::SystemFacts system = read(root);
  EXPECT_EQ(system.distribution.value, "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(system.distribution_id.value, "debian 12");
  EXPECT_EQ(system.kernel.value, "6.1.0-26-amd64");
  EXPECT_EQ(system.architecture.value, "x86_64");
  EXPECT_EQ(system.libc.value, "glibc");
  EXPECT_EQ(system.glibc.value, "2.36");
  EXPECT_EQ(system.glibcxx.why, WhyNot::not_present);
  EXPECT_EQ(system.cpu_model.value, "AMD Ryzen 9 5950X");
  EXPECT_EQ(system.cpus.value, 16u);
  EXPECT_FALSE(system.cpu_limit);
  EXPECT_EQ(system.cpu_limit.why, WhyNot::not_present);
  EXPECT_EQ(system.ram_bytes.value, 65536000ull << 10);
  EXPECT_EQ(system.ram_available_bytes.value, 60000000ull << 10);
  EXPECT_FALSE(system.memory_limit_bytes);
  EXPECT_EQ(system.memory_limit_bytes.why, WhyNot::not_present);
  EXPECT_EQ(system.cgroup.value, "v2");
  EXPECT_EQ(system.shm_bytes.value, 32768000ull << 10);
  EXPECT_EQ(system.memlock_bytes.value, 8388608u);
  EXPECT_EQ(system.wsl.why, WhyNot::not_present);
  EXPECT_EQ(system.container.value, "none");
  EXPECT_EQ(system.jetson.why, WhyNot::not_present);
  EXPECT_EQ(system.secure_boot.value, true);
  EXPECT_EQ(system.boot_id.value, "4a31d51d-7b06-491f-8450-a12738990dc6");
}

TEST(System, AnEmptyRootIsAllMissingAndSaysWhy) {
  FakeRoot root;
  facts::SystemFacts system = read(root);
  for (const auto* fact :
       {&system.distribution, &system.kernel, &system.architecture, &system.libc, &system.glibc,
        &system.cpu_model, &system.wsl, &system.jetson, &system.boot_id, &system.cgroup}) {
    EXPECT_FALSE(*fact);
    EXPECT_EQ(fact->why, WhyNot::not_present) << fact->source.detail;
    EXPECT_FALSE(fact->source.detail.empty());
  }
  EXPECT_FALSE(system.container) << "without any evidence nothing is claimed";
  EXPECT_FALSE(system.secure_boot);
}

TEST(System, DamagedFilesAreMalformedNotZero) {
  FakeRoot root;
  root.file("/proc/meminfo", "MemTotal: lots kB\n")
      .file("/proc/self/status", "Cpus_allowed_list:\t5-2\n");
  root.file("/proc/self/limits", "Max locked memory")
      .file("/etc/os-release", "\xff\xfe")
      .file("/proc/sys/kernel/osrelease", "");
  root.file("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "\6");
  root.file("/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
            "\x7f"
            "ELF");
  facts::SystemFacts system = read(root);
  EXPECT_EQ(system.ram_bytes.why, WhyNot::malformed);
  EXPECT_EQ(system.cpus.why, WhyNot::malformed);
  EXPECT_EQ(system.memlock_bytes.why, WhyNot::malformed);
  EXPECT_EQ(system.distribution.why, WhyNot::malformed);
  EXPECT_EQ(system.kernel.why, WhyNot::malformed);
  EXPECT_EQ(system.secure_boot.why, WhyNot::malformed);
  EXPECT_EQ(system.glibcxx.why, WhyNot::malformed);
}

TEST(System, UnreadableFilesSayNoPermission) {
  FakeRoot root;
  test::add_proc(root);
  root.file("/etc/os-release", "ID=x\n").mode("/etc/os-release", 0).mode("/proc/meminfo", 0);
  test::Unprivileged nobody;
  facts::SystemFacts system = read(root);
  EXPECT_EQ(system.distribution.why, WhyNot::no_permission);
  EXPECT_EQ(system.ram_bytes.why, WhyNot::no_permission);
  EXPECT_NE(system.ram_bytes.note.find("ermission"), std::string::npos) << system.ram_bytes.note;
}

TEST(System, MemlockMayBeUnlimited) {
  FakeRoot root;
  root.file("/proc/self/limits",
            "Max locked memory         unlimited            unlimited            bytes     \n");
  EXPECT_EQ(read(root).memlock_bytes.value, UINT64_MAX);
}

TEST(System, TheSmallestLimitOnTheWayUpCounts) {
  FakeRoot root;
  root.file("/proc/self/cgroup", "0::/a/b\n");
  root.file("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  root.file("/sys/fs/cgroup/a/b/memory.max", "max\n")
      .file("/sys/fs/cgroup/a/memory.max", "8589934592\n");
  root.file("/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n")
      .file("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  facts::SystemFacts system = read(root);
  EXPECT_EQ(system.memory_limit_bytes.value, 8589934592u);
  EXPECT_EQ(system.memory_limit_bytes.source.detail, "/sys/fs/cgroup/a/memory.max");
  EXPECT_EQ(system.cpu_limit.value, 1.5);
}

TEST(System, ReadsCgroupV1) {
  FakeRoot root;
  root.file("/proc/self/cgroup", "9:memory:/docker/abc\n8:cpu,cpuacct:/docker/abc\n");
  root.file("/proc/self/mountinfo",
            "31 23 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
            "32 23 0:28 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n");
  root.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
      .file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  facts::SystemFacts system = read(root);
  EXPECT_EQ(system.cgroup.value, "v1");
  EXPECT_EQ(system.memory_limit_bytes.why, WhyNot::not_present);
  EXPECT_EQ(system.cpu_limit.why, WhyNot::not_present);
  EXPECT_FALSE(system.cpu_limit);
  EXPECT_EQ(system.container.value, "docker");
  root.file("/sys/fs/cgroup/memory/memory.stat", "cache 1\nhierarchical_memory_limit 4294967296\n");
  root.file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "250000\n");
  system = read(root);
  EXPECT_EQ(system.memory_limit_bytes.value, 4294967296u);
  EXPECT_EQ(system.cpu_limit.value, 2.5);
}

TEST(System, TellsWhatTheLimitsLeave) {
  FakeRoot root;
  EXPECT_EQ(left_of_memory_limits(root.host()), std::nullopt);
  root.file("/proc/self/cgroup", "0::/a/b\n");
  root.file("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  root.file("/sys/fs/cgroup/a/b/memory.max", "max\n")
      .file("/sys/fs/cgroup/a/b/memory.current", "500\n");
  EXPECT_EQ(left_of_memory_limits(root.host()), std::nullopt);
  root.file("/sys/fs/cgroup/a/b/memory.max", "3000\n")
      .file("/sys/fs/cgroup/a/memory.max", "8000\n");
  EXPECT_EQ(left_of_memory_limits(root.host()), 2500u);
  root.file("/sys/fs/cgroup/a/memory.current", "7900\n");  // by its other children
  EXPECT_EQ(left_of_memory_limits(root.host()), 100u);
  // Files that were read give way.
  root.file("/sys/fs/cgroup/a/memory.stat", "anon 900\ninactive_file 7000\n");
  EXPECT_EQ(left_of_memory_limits(root.host()), 2500u);
  root.file("/sys/fs/cgroup/a/b/memory.current", "3500\n");  // the limit was lowered
  EXPECT_EQ(left_of_memory_limits(root.host()), 0u);
}

TEST(System, TellsWhatTheLimitsOfV1Leave) {
  FakeRoot root;
  root.file("/proc/self/cgroup", "9:memory:/docker/abc\n");
  root.file("/proc/self/mountinfo",
            "31 23 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  root.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
      .file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "3000\n");
  EXPECT_EQ(left_of_memory_limits(root.host()), std::nullopt);
  root.file("/sys/fs/cgroup/memory/memory.stat",
            "inactive_file 1\nhierarchical_memory_limit 9000\ntotal_inactive_file 1000\n");
  EXPECT_EQ(left_of_memory_limits(root.host()), 7000u);
  root.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "5000\n");
  EXPECT_EQ(left_of_memory_limits(root.host()), 3000u);
}

TEST(System, KnowsMusl) {
  FakeRoot root;
  root.file("/lib/ld-musl-x86_64.so.1", "x");
  facts::SystemFacts system = read(root);
  EXPECT_EQ(system.libc.value, "musl");
  EXPECT_FALSE(system.glibc);
}

TEST(System, TellsWslVersions) {
  struct Case {
    const char *version, *wsl;
  } cases[] = {
      {"Linux version 5.15.153.1-microsoft-standard-WSL2 (root@x) (gcc)", "2"},
      {"Linux version 4.19.84-microsoft-standard (oe-user@x)", "2"},
      {"Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)", "1"},
  };
  for (const Case& each : cases) {
    FakeRoot root;
    root.file("/proc/version", each.version);
    facts::SystemFacts system = read(root);
    EXPECT_EQ(system.wsl.value, each.wsl) << each.version;
    EXPECT_EQ(system.container.value, "none");
  }
  FakeRoot own_kernel;
  own_kernel.file("/proc/version", "Linux version 6.6.0-mine").file("/dev/dxg", "");
  EXPECT_EQ(read(own_kernel).wsl.value, "2");
}

TEST(System, NamesJetsons) {
  FakeRoot root;
  root.file("/etc/nv_tegra_release",
            "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64\n");
  EXPECT_EQ(read(root).jetson.value, "L4T 36.4.3");
  root.file("/proc/device-tree/model", std::string("NVIDIA Jetson AGX Orin Developer Kit\0", 37));
  EXPECT_EQ(read(root).jetson.value, "NVIDIA Jetson AGX Orin Developer Kit (L4T 36.4.3)");
  FakeRoot other_board;
  other_board.file("/proc/device-tree/model", std::string("Raspberry Pi 5\0", 15));
  EXPECT_FALSE(read(other_board).jetson);
}

TEST(System, SecureBootIsOffWithoutEfiAndUnknownInAContainer) {
  FakeRoot bios;
  bios.folder("/sys/firmware/acpi");
  EXPECT_EQ(read(bios).secure_boot.value, false);
  FakeRoot container;
  container.folder("/sys/firmware");
  EXPECT_FALSE(read(container).secure_boot);
  FakeRoot unmounted;
  unmounted.folder("/sys/firmware/efi");
  EXPECT_FALSE(read(unmounted).secure_boot);
}

struct ContainerCase {
  const char* name;
  std::function<void(FakeRoot&)> build;
  std::map<std::string, std::string> variables;
  const char *kind, *told_by;
};

TEST(System, TellsContainersAndHow) {
  const std::string overlay =
      "1 2 0:5 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/A\n";
  const ContainerCase cases[] = {
      {"docker", [](FakeRoot& r) { r.file("/.dockerenv", ""); }, {}, "docker", "/.dockerenv"},
      {"podman",
       [](FakeRoot& r) { r.file("/run/.containerenv", "engine=\"podman-4\""); },
       {},
       "podman",
       "/run/.containerenv"},
      {"pod",
       [](FakeRoot& r) { r.file("/.dockerenv", ""); },
       {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}},
       "kubernetes",
       "KUBERNETES_SERVICE_HOST"},
      {"pod by files",
       [](FakeRoot& r) { r.folder("/var/run/secrets/kubernetes.io/serviceaccount"); },
       {},
       "kubernetes",
       "/var/run/secrets/kubernetes.io"},
      {"apptainer on a pod",
       [](FakeRoot&) {},
       {{"APPTAINER_CONTAINER", "/x.sif"}, {"KUBERNETES_SERVICE_HOST", "10.0.0.1"}},
       "apptainer",
       "APPTAINER_CONTAINER"},
      {"singularity",
       [](FakeRoot& r) { r.folder("/.singularity.d"); },
       {},
       "apptainer",
       "/.singularity.d"},
      {"lxc",
       [](FakeRoot& r) { r.file("/run/systemd/container", "lxc\n"); },
       {},
       "lxc",
       "/run/systemd/container"},
      {"nspawn",
       [](FakeRoot& r) { r.file("/run/systemd/container", "systemd-nspawn\n"); },
       {},
       "systemd-nspawn",
       "/run/systemd/container"},
      {"by cgroup",
       [](FakeRoot& r) { r.file("/proc/self/cgroup", "1:x:/system.slice/docker-abc.scope\n"); },
       {},
       "docker",
       "/proc/self/cgroup"},
      {"pod by cgroup",
       [](FakeRoot& r) {
         r.file("/proc/self/cgroup", "0::/kubepods.slice/cri-containerd-1.scope\n");
       },
       {},
       "kubernetes",
       "/proc/self/cgroup"},
      {"containerd by cgroup",
       [](FakeRoot& r) { r.file("/proc/self/cgroup", "0::/containerd/x\n"); },
       {},
       "containerd",
       "/proc/self/cgroup"},
      {"by root layers",
       [&](FakeRoot& r) { r.file("/proc/self/mountinfo", overlay); },
       {},
       "docker",
       "/proc/self/mountinfo (/)"},
      {"podman by mounts",
       [](FakeRoot& r) {
         r.file("/proc/self/mountinfo",
                "1 2 0:5 /containers/storage/overlay-containers/a/userdata/hosts /etc/hosts rw - "
                "tmpfs tmpfs rw\n");
       },
       {},
       "podman",
       "/proc/self/mountinfo (/etc/hosts)"},
  };
  for (const ContainerCase& each : cases) {
    FakeRoot root;
    each.build(root);
    facts::SystemFacts system = read(root, each.variables);
    EXPECT_EQ(system.container.value, each.kind) << each.name;
    EXPECT_EQ(system.container.source.detail, each.told_by) << each.name;
  }
}

TEST(System, AMachineMadeFromAnImageIsNoContainer) {
  FakeRoot root;
  test::add_bare_host(root);
  root.file("/.dockerenv", "");
  EXPECT_EQ(read(root).container.value, "none");
}

TEST(System, TheEngineOnAHostIsNoContainer) {
  FakeRoot root;
  test::add_bare_host(root);
  root.file("/proc/1/cgroup", "0::/init.scope\n")
      .file("/proc/self/cgroup", "0::/system.slice/docker.service\n");
  EXPECT_EQ(read(root).container.value, "none");
}

TEST(System, ReadsThisMachine) {
  facts::Facts facts;
  read_system(RealHost(), facts);
  EXPECT_TRUE(facts.system.kernel) << facts.system.kernel.note;
  EXPECT_TRUE(facts.system.architecture);
  EXPECT_TRUE(facts.system.ram_bytes);
  EXPECT_TRUE(facts.system.cpus);
}

}  // namespace system_test
}  // namespace cufit::host
