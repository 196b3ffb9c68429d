// SPDX-License-Identifier: Apache-2.0
#include "formats/system/tool_versions.h"

#include <gtest/gtest.h>

#include "formats/system/cpu_list.h"

namespace cufit::formats {
namespace tool_versions_test {

using namespace std::string_literals;

TEST(ToolVersions, GccFromItsBytes) {
  struct Case {
    const char* name;
    std::string bytes, expected;
  };
  for (const Case& c : {
           Case{"Debian", "x\0 zstd\00012.2.0\0(Debian 12.2.0-14+deb12u1) \0gcc version %s %s\n\0"s,
                "(Debian 12.2.0-14+deb12u1) 12.2.0"},
           Case{"aligned, other order", "\0(GCC) \0\0\0\00010.2.1 20210110\0"s,
                "(GCC) 10.2.1 20210110"},
           Case{"number missing", "\0(GCC) \0gcc version\0"s, ""},
           Case{"two that differ", "\00012.2.0\0(GCC) \0x\00013.1.0\0(GCC) \0"s, ""},
           Case{"no parenthesis", "\00012.2.0\0GCC) \0"s, ""},
           Case{"at the edges", ") \0"s, ""},
           Case{"empty", "", ""},
       }) {
    EXPECT_EQ(gcc_version_in(c.bytes), c.expected) << c.name;
  }
}

TEST(ToolVersions, NvccFromItsBytes) {
  EXPECT_EQ(
      nvcc_version_in("\0Cuda compilation tools, release 13.0, V13.0.88\nBuild cuda_13.0.r13.0\0"s),
      "13.0.88");
  EXPECT_EQ(nvcc_version_in("Cuda compilation tools, release %s, V%s\n"), "");
  EXPECT_EQ(nvcc_version_in("Cuda compilation tools, release 13.0"), "");
}

TEST(ToolVersions, DpkgNamesInstalledPackagesOnly) {
  const std::string status =
      "Package: cmake-data\nStatus: install ok installed\nVersion: 1.0\n\n"
      "Package: cmake\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1:3.25.1-1\n\n"
      "Package: gcc-13\nStatus: deinstall ok config-files\nVersion: 13.3.0-6ubuntu2~24.04.1\n";
  EXPECT_EQ(dpkg_version(status, "cmake"), "1:3.25.1-1");
  EXPECT_EQ(dpkg_version(status, "gcc-13"), "");
  EXPECT_EQ(dpkg_version(status, "make"), "");
  EXPECT_EQ(dpkg_upstream("1:3.25.1-1"), "3.25.1");
  EXPECT_EQ(dpkg_upstream("12-20220319-1ubuntu1"), "12-20220319");
}

TEST(CpuList, ReadsTheKernelsFormAndPrintsLscpus) {
  struct Case {
    const char *text, *printed;
  };
  for (const Case& c :
       {Case{"0-1", "0,1"}, Case{"0-3,8,10-11\n", "0-3,8,10,11"}, Case{"", ""}, Case{"7", "7"}}) {
    auto list = parse_cpu_list(c.text);
    ASSERT_TRUE(list) << c.text;
    EXPECT_EQ(cpu_list_text(*list), c.printed);
  }
  for (const char* bad : {"a", "3-1", "0-", "-1", "0-99999999", "0,,1", "0-65535,0-65535"}) {
    EXPECT_FALSE(parse_cpu_list(bad)) << bad;
  }
}

}  // namespace tool_versions_test
}  // namespace cufit::formats
