// SPDX-License-Identifier: Apache-2.0
#include "host/quota/guard_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "host/quota/guard_library.h"
#include "support/fake_root.h"

namespace cufit::host {
namespace guard_file_test {

std::string bytes_of(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

class GuardFileTest : public ::testing::Test {
 protected:
  GuardFileTest() { root_.folder("/q").mode("/q", 0700).folder("/cache"); }
  Result<std::string> write(std::map<std::string, std::string> variables) const {
    return write_guard_library(RealHost("/", std::move(variables)), root_.at("/q"));
  }
  std::map<std::string, std::string> cache(const std::string& path) const {
    return {{"XDG_CACHE_HOME", root_.at(path)}};
  }
  bool is_in(const Result<std::string>& path, const std::string& folder) const {
    return path && path->rfind(root_.at(folder) + "/", 0) == 0;
  }
  test::FakeRoot root_;
};

TEST_F(GuardFileTest, TheVeryBytesInTheCache) {
  const auto path = write(cache("/cache"));
  ASSERT_TRUE(is_in(path, "/cache/cufit/guard"));
  EXPECT_EQ(bytes_of(*path), guard_library());
  struct stat status {};
  ASSERT_EQ(::stat(path->c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 022, 0u);
  EXPECT_EQ(
      *write({{"HOME", root_.at("/home")}}),
      root_.at("/home/.cache/cufit/guard/") + std::filesystem::path(*path).filename().string());
}

// Root with another's HOME (sudo -E): the other could put a library of his own there.
TEST_F(GuardFileTest, NotBelowAFolderThatOthersMayChange) {
  root_.folder("/theirs/inner").mode("/theirs", 0777);
  EXPECT_TRUE(is_in(write(cache("/theirs/inner")), "/q/guard"));
  EXPECT_FALSE(std::filesystem::exists(root_.at("/theirs/inner/cufit")));
  root_.mode("/theirs", 0755);
  EXPECT_TRUE(is_in(write(cache("/theirs/inner")), "/theirs/inner/cufit/guard"));
  if (::geteuid() != 0) return;
  constexpr uid_t k_nobody = 65534;
  root_.folder("/nobody/inner");
  ASSERT_EQ(::chown(root_.at("/nobody").c_str(), k_nobody, k_nobody), 0);
  EXPECT_TRUE(is_in(write(cache("/nobody/inner")), "/q/guard"));
}

TEST_F(GuardFileTest, WhatWasChangedIsWrittenAnew) {
  const auto path = write(cache("/cache"));
  ASSERT_TRUE(path);
  std::ofstream(*path, std::ios::binary | std::ios::in).put('x');
  ASSERT_NE(bytes_of(*path), guard_library());
  ASSERT_TRUE(write(cache("/cache")));
  EXPECT_EQ(bytes_of(*path), guard_library());
  std::ofstream(*path, std::ios::binary | std::ios::app).put('x');
  ASSERT_TRUE(write(cache("/cache")));
  EXPECT_EQ(bytes_of(*path), guard_library());
  // A link to the right bytes is not a file of ours.
  std::filesystem::rename(*path, root_.at("/copy"));
  std::filesystem::create_symlink(root_.at("/copy"), *path);
  ASSERT_TRUE(write(cache("/cache")));
  EXPECT_FALSE(std::filesystem::is_symlink(*path));
}

// A umask that lets the group write, as distributions have it.
TEST_F(GuardFileTest, WhateverTheUmask) {
  const mode_t before = ::umask(002);
  const auto path = write(cache("/cache"));
  ::umask(before);
  EXPECT_TRUE(is_in(path, "/cache/cufit/guard"));
}

TEST_F(GuardFileTest, NamesThatLdPreloadWouldPart) {
  for (const char* name : {"/with blank", "/with:colon", "/with\ttab"}) {
    root_.folder(name);
    EXPECT_TRUE(is_in(write(cache(name)), "/q/guard")) << name;
  }
}

TEST_F(GuardFileTest, WhereItMayNotBeWritten) {
  root_.file("/file", "");
  EXPECT_TRUE(is_in(write(cache("/file")), "/q/guard"));
  EXPECT_TRUE(is_in(write({{"XDG_CACHE_HOME", "relative"}}), "/q/guard"));
  EXPECT_TRUE(is_in(write({}), "/q/guard"));
  root_.folder("/open/cufit/guard").mode("/open/cufit/guard", 0777);
  EXPECT_TRUE(is_in(write(cache("/open")), "/q/guard")) << "others may write there";
}

}  // namespace guard_file_test
}  // namespace cufit::host
