// SPDX-License-Identifier: Apache-2.0
// Single rules of the search. That they add up to what glibc does is shown by
// process_image_glibc_test.cc, which asks the real loader.
#include "host/machine/loader.h"

#include <gtest/gtest.h>

#include "unit/host/temporary_tree.h"

namespace cufit::host {
namespace loader_test {

std::string elf(int machine = 62, int elf_class = 2, int type = 3) {
  std::string out(64, '\0');
  out.replace(0, 4, "\177ELF");
  out[4] = static_cast<char>(elf_class);
  out[5] = out[6] = 1;
  out[16] = static_cast<char>(type);
  out[18] = static_cast<char>(machine);
  return out;
}

class Search : public testing::Test {
 protected:
  void SetUp() override {
    tree.write("/lib64/ld-linux-x86-64.so.2", elf());
    tree.write("/lib/x86_64-linux-gnu/libc.so.6", elf());
  }
  std::optional<Located> find(const std::string& name, const Requester* requester = nullptr) const {
    RealHost host = tree.host(variables);
    return LibrarySearch(host, read_loader_settings(host)).find(name, requester);
  }
  TemporaryTree tree;
  std::map<std::string, std::string> variables;
};

TEST_F(Search, DefaultDirectoriesInOrder) {
  tree.write("/usr/lib/liba.so", elf());
  EXPECT_EQ(find("liba.so")->path, "/usr/lib/liba.so");
  tree.write("/usr/lib/x86_64-linux-gnu/liba.so", elf());
  EXPECT_EQ(find("liba.so")->path, "/usr/lib/x86_64-linux-gnu/liba.so");
  EXPECT_EQ(find("liba.so")->by, "default directory");
  EXPECT_FALSE(find("libmissing.so"));
}

TEST_F(Search, FedoraUsesLib64) {
  std::filesystem::remove_all(tree.at("/lib/x86_64-linux-gnu"));
  tree.write("/usr/lib64/libc.so.6", elf());
  tree.write("/usr/lib64/liba.so", elf());
  tree.write("/usr/lib/liba.so", elf());
  EXPECT_EQ(find("liba.so")->path, "/usr/lib64/liba.so");
  Requester requester{"/opt/x.so", {"/opt/$LIB"}, {}, false, nullptr};
  tree.write("/opt/lib64/liba.so", elf());
  EXPECT_EQ(find("liba.so", &requester)->path, "/opt/lib64/liba.so");
}

TEST_F(Search, OtherClassOrMachineIsPassedOver) {
  variables["LD_LIBRARY_PATH"] = "/a:/b:/c";
  tree.write("/a/liba.so", elf(62, 1));
  tree.write("/b/liba.so", elf(183));
  tree.write("/c/liba.so", elf());
  EXPECT_EQ(find("liba.so")->path, "/c/liba.so");
}

TEST_F(Search, WhatIsNotElfEndsTheSearchWithAnError) {
  variables["LD_LIBRARY_PATH"] = "/a:/c";
  tree.write("/c/liba.so", elf());
  for (auto [bytes, problem] :
       {std::pair<std::string, const char*>{std::string(100, 'x'), "invalid ELF header"},
        {"", "file too short"},
        {"version https://git-lfs", "file too short"},
        {elf(62, 2, 1), "only ET_DYN and ET_EXEC can be loaded"}}) {
    tree.write("/a/liba.so", bytes);
    auto found = find("liba.so");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->path, "/a/liba.so");
    EXPECT_EQ(found->problem, problem);
  }
  std::filesystem::remove(tree.at("/a/liba.so"));
  std::filesystem::create_directory(tree.at("/a/liba.so"));
  EXPECT_EQ(find("liba.so")->problem, "cannot read file data: Is a directory");
}

TEST_F(Search, ExpandsTokens) {
  tree.write("/opt/t/lib/liba.so", elf());
  struct Case {
    const char* rpath;
    bool found;
  };
  for (Case one :
       {Case{"$ORIGIN/lib", true}, Case{"${ORIGIN}/lib", true}, Case{"$ORIGIN/../t/lib/", true},
        Case{"$ORIGINX/lib", false}, Case{"${ORIGIN/lib", false}, Case{"$OTHER/lib", false},
        Case{"/opt/t/lib", true}}) {
    Requester requester{"/opt/t/x.so", {one.rpath}, {}, false, nullptr};
    EXPECT_EQ(find("liba.so", &requester).has_value(), one.found) << one.rpath;
  }
}

TEST_F(Search, HwcapsComeFirstWhenTheCpuHasThem) {
  variables["LD_LIBRARY_PATH"] = "/a";
  tree.write("/a/liba.so", elf());
  tree.write("/a/glibc-hwcaps/x86-64-v2/liba.so", elf());
  tree.write("/a/glibc-hwcaps/x86-64-v4/liba.so", elf());
  EXPECT_EQ(find("liba.so")->path, "/a/liba.so");
  tree.write(
      "/proc/cpuinfo",
      "processor\t: 0\nflags\t\t: fpu pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm\nbugs\t:\n");
  EXPECT_EQ(find("liba.so")->path, "/a/glibc-hwcaps/x86-64-v2/liba.so");
}

TEST_F(Search, NoDefaultLibSkipsDefaultDirectories) {
  tree.write("/usr/lib/liba.so", elf());
  Requester requester{"/opt/x.so", {}, {}, true, nullptr};
  EXPECT_FALSE(find("liba.so", &requester));
}

TEST_F(Search, MuslIsNotGuessed) {
  std::filesystem::remove(tree.at("/lib64/ld-linux-x86-64.so.2"));
  tree.write("/lib/ld-musl-x86_64.so.1", elf());
  tree.write("/usr/lib/liba.so", elf());
  RealHost host = tree.host();
  EXPECT_EQ(read_loader_settings(host).libc, "musl");
  EXPECT_FALSE(find("liba.so"));
}

TEST_F(Search, SaysWhatIsWrongWithTheCache) {
  tree.write("/etc/ld.so.cache", "not a cache");
  LoaderSettings settings = read_loader_settings(tree.host());
  EXPECT_FALSE(settings.cache);
  ASSERT_EQ(settings.problems.size(), 1u);
  EXPECT_NE(settings.problems[0].find("/etc/ld.so.cache"), std::string::npos);
}

}  // namespace loader_test
}  // namespace cufit::host
