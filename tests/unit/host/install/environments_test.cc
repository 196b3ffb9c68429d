// SPDX-License-Identifier: Apache-2.0
#include "host/install/environments.h"

#include <gtest/gtest.h>

#include "support/fake_root.h"

namespace cufit::host {
namespace environments_test {

namespace fs = std::filesystem;

class Environments : public testing::Test {
 protected:
  void SetUp() override {
    auto paths = environment_paths(root_.path(), "cu126");
    ASSERT_TRUE(paths);
    paths_ = *paths;
    fs::create_directories(paths_.envs);
  }
  void make_partial(const std::string& text) {
    fs::create_directories(paths_.partial);
    std::ofstream(paths_.partial + "/what") << text;
  }
  std::string what() {
    std::ifstream in(paths_.folder + "/what");
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  formats::EnvRecord record(const std::string& sum) {
    formats::EnvRecord out;
    out.name = "cu126";
    out.pylock_sha256 = sum;
    return out;
  }
  size_t entries() {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(paths_.envs), fs::directory_iterator()));
  }

  test::FakeRoot root_;
  EnvironmentPaths paths_;
};

TEST_F(Environments, AreSwappedInWhole) {
  make_partial("one");
  ASSERT_TRUE(swap_in(paths_, record("1")));
  EXPECT_EQ(what(), "one");
  make_partial("two");
  ASSERT_TRUE(swap_in(paths_, record("2")));
  EXPECT_EQ(what(), "two");
  EXPECT_EQ(read_record(paths_)->pylock_sha256, "2");
  EXPECT_EQ(entries(), 2u);  // the folder and its record, nothing beside
}

TEST_F(Environments, StayWhereTheNewOneCannotBeMoved) {
  make_partial("one");
  ASSERT_TRUE(swap_in(paths_, record("1")));
  EXPECT_FALSE(swap_in(paths_, record("2")));  // there is no partial
  EXPECT_EQ(what(), "one");
  make_partial("two");
  fs::remove(paths_.record);
  fs::create_directories(paths_.record + "/in the way");  // the record cannot be written
  EXPECT_FALSE(swap_in(paths_, record("2")));
  EXPECT_EQ(what(), "one");
}

TEST_F(Environments, LeftoversGoAndWhatWasBeforeComesBack) {
  fs::create_directories(paths_.envs + "/.cu126.partial-1/x");
  fs::create_directories(paths_.envs + "/.cu130.previous-1/x");
  fs::create_directories(paths_.envs + "/.cpu.previous-1/x");
  fs::create_directories(paths_.envs + "/cpu");
  EXPECT_EQ(remove_leftovers(paths_.envs), 3u);
  EXPECT_TRUE(fs::exists(paths_.envs + "/cu130/x"));  // killed between two renames
  EXPECT_FALSE(fs::exists(paths_.envs + "/cpu/x"));
  EXPECT_EQ(entries(), 2u);
}

TEST_F(Environments, OnlyThoseOfCufitAreRemoved) {
  fs::create_directories(paths_.folder);
  const auto foreign = remove_environment(paths_);
  ASSERT_FALSE(foreign);
  EXPECT_TRUE(fs::exists(paths_.folder));
  EXPECT_EQ(read_record(paths_).error().code, Code::not_found);
  std::ofstream(paths_.record) << "{ \"schema\": \"cufit.env/1\", \"cla";
  EXPECT_EQ(read_record(paths_).error().code, Code::malformed);  // made by cufit, and damaged
  EXPECT_FALSE(remove_environment(paths_));
  EXPECT_TRUE(fs::exists(paths_.folder));
  std::ofstream(paths_.record) << formats::env_record_text(record("1"));
  fs::remove(paths_.folder);
  root_.folder("/elsewhere/x");
  fs::create_directory_symlink(root_.at("/elsewhere"), paths_.folder);
  EXPECT_FALSE(remove_environment(paths_));
  EXPECT_TRUE(fs::exists(root_.at("/elsewhere/x")));
  fs::remove(paths_.folder);
  fs::create_directories(paths_.folder + "/lib");
  EXPECT_TRUE(remove_environment(paths_));
  EXPECT_EQ(entries(), 0u);
}

TEST_F(Environments, AreMadeByOneAtATime) {
  auto first = EnvironmentsLock::take(paths_.envs);
  ASSERT_TRUE(first);
  const auto second = EnvironmentsLock::take(paths_.envs);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::io);
  { const auto ends = std::move(*first); }
  EXPECT_TRUE(EnvironmentsLock::take(paths_.envs));
}

TEST_F(Environments, CountWhatTheyShare) {
  root_.file("/e/a", "12345").file("/e/d/b", "123");
  fs::create_hard_link(root_.at("/e/a"), root_.at("/cache"));
  fs::create_symlink("a", root_.at("/e/link"));
  const Usage usage = usage_of(root_.at("/e"));
  EXPECT_EQ(usage.files, 2u);
  EXPECT_EQ(usage.bytes, 8u);
  EXPECT_EQ(usage.shared_bytes, 5u);
  EXPECT_TRUE(space_at(root_.at("/not/yet/there")));
}

TEST(ClassName, IsPartOfAPathAndNoPath) {
  for (const char* good : {"cu126", "cpu", "cu126-torch210", "a.b"})
    EXPECT_TRUE(is_class_name(good));
  for (const char* bad : {"", ".", "..", ".x", "a/b", "../x", "-rf", "a b", "a\n"})
    EXPECT_FALSE(is_class_name(bad)) << bad;
}

TEST(EnvironmentRecord, HasItsTimeInUtc) {
  EXPECT_EQ(utc_text(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_text(1795821905), "2026-11-27T23:25:05Z");
}

}  // namespace environments_test
}  // namespace cufit::host
