// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/traces_at_once.h"

#include <gtest/gtest.h>

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
  root.file("/sys/fs/cgroup/memory.max", "max\n");
  root.file("/sys/fs/cgroup/memory.current", "1073741824\n");
  EXPECT_TRUE(room_for_two(root.host(), k_most));
  root.file("/sys/fs/cgroup/memory.max", "4294967296\n");
  EXPECT_TRUE(room_for_two(root.host(), uint64_t{1023} << 20));
  EXPECT_FALSE(room_for_two(root.host(), uint64_t{2} << 30));
}

}  // namespace traces_at_once_test
}  // namespace cufit::commands
