// SPDX-License-Identifier: Apache-2.0
#include "host/python/sitecustomize_dir.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace cufit::host {
namespace sitecustomize_dir_test {

namespace fs = std::filesystem;

TEST(ScriptFolder, GoesWithAllThatIsInIt) {
  fs::path path;
  {
    Result<ScriptFolder> folder = ScriptFolder::make("test", "print(1)\n", {"state"});
    ASSERT_TRUE(folder) << folder.error().text();
    path = folder->path();
    EXPECT_TRUE(path.is_absolute());
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
    EXPECT_TRUE(fs::is_regular_file(folder->script()));
    EXPECT_TRUE(fs::is_directory(path / "state"));
    std::ofstream(path / "state" / "left") << "by the program";
    const ScriptFolder moved = std::move(*folder);
    EXPECT_EQ(moved.path(), path);
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(ScriptFolder, LeavesWhatALinkInItLeadsTo) {
  char outside[] = "/tmp/cufit-outside-XXXXXX";
  ASSERT_NE(mkdtemp(outside), nullptr);
  std::ofstream(fs::path(outside) / "kept") << "of the user";
  {
    const Result<ScriptFolder> folder = ScriptFolder::make("test", "", {});
    ASSERT_TRUE(folder);
    fs::create_directory_symlink(outside, fs::path(folder->path()) / "link");
  }
  EXPECT_TRUE(fs::exists(fs::path(outside) / "kept"));
  fs::remove_all(outside);
}

TEST(ScriptFolder, StandsBeforeThePythonPathOfTheUser) {
  const Result<ScriptFolder> folder = ScriptFolder::make("test", "", {});
  ASSERT_TRUE(folder);
  unsetenv("PYTHONPATH");
  EXPECT_EQ(folder->python_path(), folder->path());
  setenv("PYTHONPATH", "/a:/b", 1);
  EXPECT_EQ(folder->python_path(), folder->path() + ":/a:/b");
  unsetenv("PYTHONPATH");
}

}  // namespace sitecustomize_dir_test
}  // namespace cufit::host
