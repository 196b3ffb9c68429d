// SPDX-License-Identifier: Apache-2.0
#include "host/files/host.h"

#include <gtest/gtest.h>

#include "support/fake_root.h"

namespace cufit::host {
namespace real_host_test {

using test::FakeRoot;

std::string text_of(const Host& host, const std::string& path) {
  Result<std::string> text = host.read_file(path);
  return text ? *text : "error: " + std::string(to_string(text.error().code));
}

TEST(RealHost, ReadsFilesOfAnySize) {
  FakeRoot root;
  for (size_t size :
       {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{100000}}) {
    std::string text(size, 'x');
    root.file("/a", text);
    EXPECT_EQ(text_of(root.host(), "/a"), text) << size;
  }
}

TEST(RealHost, RefusesAFileOverTheLimitInsteadOfCuttingIt) {
  FakeRoot root;
  root.file("/a", std::string(100, 'x'));
  RealHost host = root.host();
  EXPECT_TRUE(host.read_file("/a", 100));
  Result<std::string> text = host.read_file("/a", 99);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Code::unsupported);
  EXPECT_NE(text.error().what.find("`/a`"), std::string::npos) << text.error().what;
}

TEST(RealHost, ReadsOnlyTheHeadWhenAsked) {
  FakeRoot root;
  root.file("/a", "0123456789");
  EXPECT_EQ(*root.host().read_head("/a", 4), "0123");
  EXPECT_EQ(*root.host().read_head("/a", 40), "0123456789");
  EXPECT_EQ(RealHost().read_head("/proc/self/status", 5)->substr(0, 5), "Name:");
}

TEST(RealHost, ReadsProcFilesThatSaySizeZero) {
  RealHost host;
  EXPECT_NE(text_of(host, "/proc/self/status").find("Cpus_allowed_list:"), std::string::npos);
}

TEST(RealHost, NeverBlocksOnAPipe) {
  FakeRoot root;
  ASSERT_EQ(::mkfifo(root.at("/pipe").c_str(), 0600), 0);
  EXPECT_EQ(root.host().read_file("/pipe", 10).error().code, Code::unsupported);
  EXPECT_EQ(root.host().open("/pipe").error().code, Code::unsupported);
}

TEST(RealHost, MapsErrors) {
  FakeRoot root;
  root.file("/file", "x").link("/loop", "/loop").folder("/folder");
  RealHost host = root.host();
  EXPECT_EQ(host.read_file("/none", 10).error().code, Code::not_found);
  EXPECT_EQ(host.read_file("/file/below", 10).error().code, Code::not_found);
  EXPECT_EQ(host.read_file("/folder", 10).error().code, Code::unsupported);
  EXPECT_EQ(host.read_file("/loop", 10).error().code, Code::malformed);
  EXPECT_EQ(host.read_file("/" + std::string(5000, 'n'), 10).error().code, Code::malformed);
  EXPECT_EQ(host.read_file(std::string("/file\0x", 7), 10).error().code, Code::not_found);
  EXPECT_EQ(host.list("/none").error().code, Code::not_found);
  EXPECT_EQ(host.list("/file").error().code, Code::not_found);
  EXPECT_EQ(host.read_link("/file").error().code, Code::unsupported);
  EXPECT_EQ(host.real_path("/none").error().code, Code::not_found);
  EXPECT_FALSE(host.exists("/none"));
  EXPECT_EQ(host.filesystem_bytes("/").error().code, Code::unsupported);
}

TEST(RealHost, SaysNoPermission) {
  FakeRoot root;
  root.file("/secret", "x").mode("/secret", 0).file("/read", "x").mode("/read", 0444);
  root.file("/closed/below", "x").mode("/closed", 0);
  RealHost host = root.host();
  {
    test::Unprivileged nobody;
    EXPECT_EQ(host.read_file("/secret", 10).error().code, Code::no_permission);
    EXPECT_EQ(host.open("/secret").error().code, Code::no_permission);
    EXPECT_EQ(host.list("/closed").error().code, Code::no_permission);
    EXPECT_EQ(host.status("/closed/below").error().code, Code::no_permission);
    EXPECT_EQ(host.real_path("/closed/below").error().code, Code::no_permission);
    EXPECT_FALSE(host.may_read_write("/secret"));
    EXPECT_FALSE(host.may_read_write("/read"));
    EXPECT_TRUE(host.read_file("/read", 10));
  }
  root.mode("/closed", 0755);
}

TEST(RealHost, ResolvesLinksInsideTheRoot) {
  FakeRoot root;
  root.file("/usr/lib/libcuda.so.535", "inside").link("/usr/lib/libcuda.so.1", "libcuda.so.535");
  root.link("/lib", "/usr/lib")
      .link("/abs", "/usr/lib/libcuda.so.1")
      .link("/usr/up", "../lib/libcuda.so.1");
  root.file("/outside", "still inside").link("/escape", "../../../../outside");
  RealHost host = root.host();
  EXPECT_EQ(text_of(host, "/lib/libcuda.so.1"), "inside");
  EXPECT_EQ(text_of(host, "/abs"), "inside");
  EXPECT_EQ(text_of(host, "/usr/up"), "inside");
  EXPECT_EQ(text_of(host, "/escape"), "still inside");
  EXPECT_EQ(text_of(host, "/../../outside"), "still inside");
  EXPECT_EQ(text_of(host, "lib/../lib/./libcuda.so.1"), "inside");
  EXPECT_EQ(*host.real_path("/lib/libcuda.so.1"), "/usr/lib/libcuda.so.535");
  EXPECT_EQ(*host.real_path("/"), "/");
  EXPECT_EQ(*host.read_link("/lib/libcuda.so.1"), "libcuda.so.535");
  EXPECT_EQ(*host.read_link("/lib"), "/usr/lib");
}

// The password file exists on the real machine; with a root it must not be reachable by any
// spelling.
TEST(RealHost, NeverLeavesTheRoot) {
  FakeRoot root;
  root.link("/a", "/etc/passwd")
      .link("/b", "../../../../../../etc/passwd")
      .link("/c", "/")
      .folder("/d/e");
  RealHost host = root.host();
  for (const char* path :
       {"/a", "/b", "/c/etc/passwd", "/d/e/../../../../etc/passwd", "../etc/passwd"}) {
    EXPECT_EQ(text_of(host, path), "error: not found") << path;
  }
}

TEST(RealHost, ListsSorted) {
  FakeRoot root;
  root.file("/d/b", "").file("/d/a", "").folder("/d/c").file("/d/.hidden", "");
  EXPECT_EQ(*root.host().list("/d"), (std::vector<std::string>{".hidden", "a", "b", "c"}));
}

TEST(RealHost, StatusFollowsLinks) {
  FakeRoot root;
  root.file("/f", "four").link("/l", "/f").folder("/d");
  RealHost host = root.host();
  EXPECT_TRUE(host.status("/l")->is_regular);
  EXPECT_EQ(host.status("/l")->size_bytes, 4u);
  EXPECT_TRUE(host.status("/d")->is_directory);
  EXPECT_TRUE(host.may_read_write("/f"));
  RealHost machine;
  EXPECT_TRUE(machine.status("/dev/null")->is_character_device);
  EXPECT_EQ(machine.status("/dev/null")->device_major, 1u);
  EXPECT_EQ(machine.status("/dev/null")->device_minor, 3u);
}

TEST(RealHost, SourceReadsPartsAndStopsAtTheEnd) {
  FakeRoot root;
  root.file("/f", "0123456789");
  Result<std::unique_ptr<ByteSource>> source = root.host().open("/f");
  ASSERT_TRUE(source);
  EXPECT_EQ((*source)->size_bytes(), 10u);
  EXPECT_EQ((*source)->name(), "/f");
  EXPECT_EQ(*(*source)->read_exact(3, 4), "3456");
  EXPECT_EQ((*source)->read_exact(8, 4).error().code, Code::malformed);
  std::byte buffer[20];
  EXPECT_EQ(*(*source)->read(8, buffer), 2u);
  EXPECT_EQ(*(*source)->read(10, buffer), 0u);
  EXPECT_EQ(*(*source)->read(UINT64_MAX, buffer), 0u);
}

TEST(RealHost, AFileThatShrinksIsAShortReadNotACrash) {
  FakeRoot root;
  root.file("/f", std::string(8192, 'x'));
  Result<std::unique_ptr<ByteSource>> source = root.host().open("/f");
  ASSERT_TRUE(source);
  ASSERT_EQ(::truncate(root.at("/f").c_str(), 5000), 0);
  std::string buffer(8192, '\0');
  EXPECT_EQ(*(*source)->read(0, std::as_writable_bytes(std::span(buffer.data(), buffer.size()))),
            5000u);
  EXPECT_EQ((*source)->read_exact(0, 8192).error().code, Code::malformed);
}

TEST(RealHost, GivesTheVariablesItWasToldSorted) {
  FakeRoot root;
  RealHost host = root.host({{"B", "2"}, {"A", "1"}, {"EMPTY", ""}});
  EXPECT_EQ(host.variable("A"), "1");
  EXPECT_EQ(host.variable("EMPTY"), "");
  EXPECT_FALSE(host.variable("HOME"));
  EXPECT_EQ(host.variables().front().first, "A");
  ::setenv("CUFIT_TEST_VARIABLE", "yes=no", 1);
  EXPECT_EQ(RealHost().variable("CUFIT_TEST_VARIABLE"), "yes=no");
  ::unsetenv("CUFIT_TEST_VARIABLE");
}

TEST(RealHost, KnowsFilesystemSizes) {
  EXPECT_TRUE(RealHost().filesystem_bytes("/proc").has_value());
}

}  // namespace real_host_test
}  // namespace cufit::host
