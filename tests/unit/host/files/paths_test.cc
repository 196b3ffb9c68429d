// SPDX-License-Identifier: Apache-2.0
#include "host/files/paths.h"

#include <gtest/gtest.h>

#include "host/files/new_folder.h"
#include "support/fake_root.h"

namespace cufit::host {
namespace paths_test {

TEST(Paths, AreResolvedAsFarAsTheyExist) {
  test::FakeRoot root;
  root.folder("/real").link("/link", "real");
  EXPECT_EQ(resolved_path(root.at("/link/absent/x")),
            resolved_path(root.path()) + "/real/absent/x");
}

TEST(Paths, RelativeOnesFollowLinks) {
  test::FakeRoot root;
  root.file("/real/sub/f", "").link("/link", "real/sub");
  EXPECT_EQ(relative_path(root.at("/link/f"), root.at("/real")), "sub/f");
  EXPECT_EQ(relative_path(root.at("/real/f"), root.at("/absent/x")), "../../real/f");
}

TEST(Paths, ALinkThatLeadsNowhereIsAnEntry) {
  test::FakeRoot root;
  root.link("/link", "absent");
  EXPECT_TRUE(entry_exists(root.at("/link")));
  EXPECT_FALSE(path_exists(root.at("/link")));
}

TEST(Paths, SayWhyAFolderCannotBeMade) {
  test::FakeRoot root;
  root.file("/file", "");
  const std::string path = root.at("/file/sub");
  const Result<void> made = create_folders(path);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().text(), "`" + path + "`: Not a directory");
}

TEST(NewFolder, GoesAgainUnlessItIsKeptOrHoldsAnything) {
  test::FakeRoot root;
  root.folder("/old");
  const std::string deep = root.at("/old/new/deep");
  {
    NewFolder folder;
    ASSERT_TRUE(folder.make(deep + "/"));
    EXPECT_TRUE(is_folder(deep));
  }
  EXPECT_FALSE(path_exists(root.at("/old/new")));
  EXPECT_TRUE(is_folder(root.at("/old")));
  {
    NewFolder folder;
    ASSERT_TRUE(folder.make(deep));
    root.file("/old/new/file", "");
  }
  EXPECT_FALSE(path_exists(deep));
  EXPECT_TRUE(is_folder(root.at("/old/new")));
  {
    NewFolder folder;
    ASSERT_TRUE(folder.make(deep));
    folder.keep();
  }
  EXPECT_TRUE(is_folder(deep));
}

}  // namespace paths_test
}  // namespace cufit::host
