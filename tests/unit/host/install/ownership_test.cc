// SPDX-License-Identifier: Apache-2.0
#include "host/install/ownership.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "support/fake_root.h"

namespace cufit::host {
namespace ownership_test {

TEST(Ownership, NamingAFolderTrustsItsOwnerAlone) {
  const std::vector<uint32_t> own = {0, 1000};
  const std::vector<OwnedPath> mine = {{"/p", 0}, {"/p/cufit.lock", 1000}};
  EXPECT_EQ(first_foreign(mine, false, own), nullptr);
  const std::vector<OwnedPath> team = {{"/p", 2000}, {"/p/cufit.lock", 2000}};
  ASSERT_NE(first_foreign(team, false, own), nullptr);
  EXPECT_EQ(first_foreign(team, false, own)->path, "/p");
  EXPECT_EQ(first_foreign(team, true, own), nullptr);
  const std::vector<OwnedPath> planted = {{"/tmp", 0}, {"/tmp/cufit.lock", 1000}, {"/tmp/e", 666}};
  for (const bool named : {false, true}) {
    ASSERT_NE(first_foreign(planted, named, own), nullptr);
    EXPECT_EQ(first_foreign(planted, named, own)->path, "/tmp/e");
  }
}

TEST(Ownership, SafeDirectoriesHoldThoseBelow) {
  EXPECT_TRUE(is_safe_directory("/a/b", "/x:/a/b/"));
  EXPECT_TRUE(is_safe_directory("/a/b/c", "/a/b"));
  EXPECT_TRUE(is_safe_directory("/a", "*"));
  EXPECT_TRUE(is_safe_directory("/a", "/"));
  for (const char* list : {"", "/a/bc", "/a/b/c", "a/b", ":", "/a/*"})
    EXPECT_FALSE(is_safe_directory("/a/b", list)) << list;
}

TEST(Ownership, LooksAtEachPartOfTheWay) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  for (const char* part : {"", "/cufit.lock", "/.cufit", "/.cufit/envs", "/.cufit/envs/cpu",
                           "/.cufit/envs/cpu.json"}) {
    test::FakeRoot root;
    root.file("/p/cufit.lock", "").file("/p/.cufit/envs/cpu/bin/python", "");
    root.file("/p/.cufit/envs/cpu.json", "");
    const std::string folder = root.at("/p"), path = folder + part;
    const RealHost host("/", {});
    EXPECT_FALSE(foreign_owner(host, folder, false, "cpu"));
    ASSERT_EQ(::lchown(path.c_str(), 54321, 54321), 0);
    const auto foreign = foreign_owner(host, folder, false, "cpu");
    ASSERT_TRUE(foreign) << path;
    EXPECT_EQ(foreign->path, path);
    EXPECT_EQ(foreign->owner, "uid 54321");
    EXPECT_FALSE(foreign_owner(RealHost("/", {{"CUFIT_SAFE_DIRECTORY", "/x:" + folder}}), folder,
                               false, "cpu"));
    EXPECT_FALSE(foreign_owner(RealHost("/", {{"SUDO_UID", "54321"}}), folder, false, "cpu"));
  }
}

}  // namespace ownership_test
}  // namespace cufit::host
