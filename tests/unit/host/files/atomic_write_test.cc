// SPDX-License-Identifier: Apache-2.0
#include "host/files/atomic_write.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace cufit::host {
namespace atomic_write_test {

namespace fs = std::filesystem;

class WriteWholeFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("cufit-write-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  static std::string text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  fs::path folder_;
};

TEST_F(WriteWholeFile, ReplacesAndKeepsTheMode) {
  ASSERT_TRUE(write_whole_file(path("page"), "first"));
  ASSERT_EQ(::chmod(path("page").c_str(), 0640), 0);
  ASSERT_TRUE(write_whole_file(path("page"), std::string(100'000, 'x')));
  EXPECT_EQ(text(path("page")), std::string(100'000, 'x'));
  struct stat status {};
  ASSERT_EQ(::stat(path("page").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
  EXPECT_EQ(files(), 1u);
}

TEST_F(WriteWholeFile, NewFilesObeyTheMask) {
  const mode_t before = ::umask(027);
  ASSERT_TRUE(write_whole_file(path("page"), "x"));
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat(path("page").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST_F(WriteWholeFile, FollowsLinks) {
  ASSERT_TRUE(write_whole_file(path("page"), "old"));
  fs::create_symlink(path("page"), path("link"));
  ASSERT_TRUE(write_whole_file(path("link"), "new"));
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(text(path("page")), "new");
}

TEST_F(WriteWholeFile, RefusesFoldersAndMissingOnes) {
  EXPECT_FALSE(write_whole_file(folder_.string(), "x"));
  EXPECT_FALSE(write_whole_file(path("nowhere/page"), "x"));
  EXPECT_EQ(files(), 0u);
}

TEST_F(WriteWholeFile, RefusesWhatMayNotBeWritten) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everything";
  ASSERT_TRUE(write_whole_file(path("page"), "kept"));
  ASSERT_EQ(::chmod(path("page").c_str(), 0444), 0);
  EXPECT_FALSE(write_whole_file(path("page"), "x"));
  EXPECT_EQ(text(path("page")), "kept");
}

TEST_F(WriteWholeFile, AFullDeviceIsAnError) {
  EXPECT_FALSE(write_whole_file("/dev/full", "x"));
  EXPECT_TRUE(write_whole_file("/dev/null", "x"));
}

}  // namespace atomic_write_test
}  // namespace cufit::host
