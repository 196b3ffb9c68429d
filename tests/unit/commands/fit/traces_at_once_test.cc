// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/traces_at_once.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "support/fake_root.h"

namespace cufit::commands {
namespace traces_at_once_test {

constexpr uint64_t k_most = uint64_t{4095} << 20;  // of 12 GiB, half as much more than it took

TEST(TracesAtOnce, NeedRoomForBoth) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core";
  test::FakeRoot root;
  EXPECT_FALSE(room_for_two(root.host(), 1));  // nothing is known
  root.file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 12582912 kB\n");
  EXPECT_FALSE(room_for_two(root.host(), 0));
  EXPECT_TRUE(room_for_two(root.host(), k_most));
  EXPECT_FALSE(room_for_two(root.host(), uint64_t{4097} << 20));
}

struct Container {
  const char *name, *cgroup, *mount, *limit, *used;  // files below the mount point
};

// What a container may take bounds them too, whichever version of cgroups the machine has.
TEST(TracesAtOnce, AContainerBoundsThem) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core";
  const Container each[] = {
      {"v2", "0::/\n", "31 23 0:28 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n",
       "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
      {"a unit of v2", "0::/a.slice/b\n", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
       "/sys/fs/cgroup/a.slice/memory.max", "/sys/fs/cgroup/a.slice/memory.current"},
      {"v1", "9:memory:/docker/abc\n",
       "31 23 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
       "/sys/fs/cgroup/memory/memory.limit_in_bytes",
       "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
  };
  for (const Container& at : each) {
    test::FakeRoot root;
    root.file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 12582912 kB\n");
    root.file("/proc/self/cgroup", at.cgroup).file("/proc/self/mountinfo", at.mount);
    root.file(at.limit, std::string(at.name) == "v1" ? "9223372036854771712\n" : "max\n");
    root.file(at.used, "1073741824\n");
    EXPECT_TRUE(room_for_two(root.host(), k_most)) << at.name;
    root.file(at.limit, "4294967296\n");
    EXPECT_TRUE(room_for_two(root.host(), uint64_t{1023} << 20)) << at.name;
    EXPECT_FALSE(room_for_two(root.host(), uint64_t{1025} << 20)) << at.name;
  }
}

}  // namespace traces_at_once_test
}  // namespace cufit::commands
