// SPDX-License-Identifier: Apache-2.0
#include "host/install/lock_folder.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <gtest/gtest.h>

#include "base/sha256.h"
#include "support/fake_root.h"

namespace cufit::host {
namespace lock_folder_test {

namespace fs = std::filesystem;

class LockFolderTest : public testing::Test {
 protected:
  LockFolderTest() {
    root_.file("/p/cufit.lock", "old index");
    root_.file("/p/pylock.a.toml", "old a");
    root_.file("/p/pylock.b.toml", "old b");
  }
  std::string folder() const { return root_.at("/p"); }
  std::string text(const std::string& name) const {
    std::ifstream in(folder() + "/" + name);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  std::set<std::string> names() const {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder()))
      out.insert(entry.path().filename().string());
    return out;
  }
  static std::vector<LockedSum> sums() {
    return {{"pylock.a.toml", sha256("old a")}, {"pylock.b.toml", sha256("old b")}};
  }
  // As a run leaves it that was killed after it had changed the first file.
  void interrupt() {
    root_.file("/p/.cufit.lock.partial/pylock.a.toml.old", "old a");
    root_.file("/p/.cufit.lock.partial/pylock.b.toml", "new b");
    root_.file("/p/.cufit.lock.partial/cufit.lock", "new index");
    root_.file("/p/pylock.a.toml", "new a");
  }

  test::FakeRoot root_;
};

TEST_F(LockFolderTest, FilesTakeEffectTogether) {
  const auto place = LockFolder::take(folder(), LockFolder::Hold::alone);
  ASSERT_TRUE(place);
  ASSERT_TRUE(place->put({{"pylock.a.toml", "new a"}, {"pylock.c.toml", "new c"}},
                         {"cufit.lock", "new index"}, {"pylock.b.toml"}));
  EXPECT_EQ(text("pylock.a.toml") + text("pylock.c.toml") + text("cufit.lock"),
            "new anew cnew index");
  EXPECT_EQ(names(), (std::set<std::string>{"cufit.lock", "pylock.a.toml", "pylock.c.toml"}));
}

TEST_F(LockFolderTest, AFailureAtTheLastFileUndoesAll) {
  fs::remove(folder() + "/cufit.lock");
  root_.file("/p/cufit.lock/in-the-way", "");
  const auto place = LockFolder::take(folder(), LockFolder::Hold::alone);
  ASSERT_TRUE(place);
  EXPECT_FALSE(place->put({{"pylock.a.toml", "new a"}, {"pylock.c.toml", "new c"}},
                          {"cufit.lock", "new index"}, {"pylock.b.toml"}));
  EXPECT_EQ(text("pylock.a.toml") + text("pylock.b.toml"), "old aold b");
  EXPECT_EQ(names(), (std::set<std::string>{"cufit.lock", "pylock.a.toml", "pylock.b.toml"}));
}

TEST_F(LockFolderTest, WhatTheLockInForceNamesIsReadAfterAnInterruption) {
  interrupt();
  for (const auto& [sum, want] : {std::pair(sums()[0], "old a"), std::pair(sums()[1], "old b")}) {
    const Result<std::string> bytes = read_locked(RealHost(), folder(), sum, 1000);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(*bytes, want);
  }
  root_.file("/p/pylock.b.toml", "edited");  // nowhere the right one: the one in its place
  EXPECT_EQ(*read_locked(RealHost(), folder(), sums()[1], 1000), "edited");
}

TEST_F(LockFolderTest, RecoversAndClearsAway) {
  interrupt();
  for (const char* left : {".cufit-12.in", ".cufit-12-constraints.txt", "pylock.a-cufit-12.toml"})
    root_.file(std::string("/p/") + left, "");
  const std::set<std::string> others = {".cufit-x.in", "pylock.a-cufit-.toml", "cufit.lock.backup"};
  for (const std::string& other : others) root_.file("/p/" + other, "");
  const auto place = LockFolder::take(folder(), LockFolder::Hold::alone);
  ASSERT_TRUE(place);
  place->recover(sums());
  EXPECT_EQ(text("pylock.a.toml") + text("pylock.b.toml") + text("cufit.lock"),
            "old aold bold index");
  std::set<std::string> want = others;
  want.insert({"cufit.lock", "pylock.a.toml", "pylock.b.toml"});
  EXPECT_EQ(names(), want);
}

TEST_F(LockFolderTest, IsHeldByOneThatWritesOrSeveralThatLook) {
  {
    const auto one = LockFolder::take(folder(), LockFolder::Hold::shared);
    const auto two = LockFolder::take(folder(), LockFolder::Hold::shared);
    EXPECT_TRUE(one && two);
    const auto writer = LockFolder::take(folder(), LockFolder::Hold::alone);
    ASSERT_FALSE(writer);
    EXPECT_NE(writer.error().text().find("another cufit"), std::string::npos);
  }
  EXPECT_TRUE(LockFolder::take(folder(), LockFolder::Hold::alone));
}

}  // namespace lock_folder_test
}  // namespace cufit::host
