// SPDX-License-Identifier: Apache-2.0
#include "formats/python/wheel_name.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace wheel_name_test {

TEST(WheelName, IsTakenApart) {
  const auto wheel = parse_wheel_name(
      "torch-2.7.1%2Bcu126-cp311-cp311-manylinux2014_x86_64.manylinux_2_28_x86_64.whl");
  ASSERT_TRUE(wheel);
  EXPECT_EQ(wheel->name, "torch");
  EXPECT_EQ(wheel->version, "2.7.1+cu126");
  EXPECT_EQ(wheel->platforms.size(), 2u);
  EXPECT_EQ(parse_wheel_name("a-1-7-py3-none-any.whl")->build, "7");
  for (const char* wrong : {"", ".whl", "torch-2.7.1.tar.gz", "a-1-py3-none.whl",
                            "a--1-py3-none-any.whl", "a-1-2-3-py3-none-any.whl"})
    EXPECT_FALSE(parse_wheel_name(wrong)) << wrong;
}

TEST(WheelName, FitsWhatPipWouldTake) {
  struct {
    const char* name;
    bool fits;
  } const cases[] = {
      {"a-1-cp311-cp311-manylinux_2_28_x86_64.whl", true},
      {"a-1-cp311-cp311-manylinux_2_34_x86_64.whl", false},
      {"a-1-cp311-cp311-manylinux2014_x86_64.whl", true},
      {"a-1-cp311-cp311-manylinux_2_28_aarch64.whl", false},
      {"a-1-cp312-cp312-manylinux_2_28_x86_64.whl", false},
      {"a-1-cp311-cp311t-manylinux_2_28_x86_64.whl", false},
      {"a-1-cp38-abi3-linux_x86_64.whl", true},
      {"a-1-cp312-abi3-linux_x86_64.whl", false},
      {"a-1-py3-none-any.whl", true},
      {"a-1-py2.py3-none-any.whl", true},
      {"a-1-py2-none-any.whl", false},
      {"a-1-py37-none-any.whl", true},
      {"a-1-py312-none-any.whl", false},
      {"a-1-cp311-none-musllinux_1_2_x86_64.whl", false},
      {"a-1-cp311-none-win_amd64.whl", false},
  };
  for (const auto& one : cases) {
    const auto wheel = parse_wheel_name(one.name);
    ASSERT_TRUE(wheel) << one.name;
    EXPECT_EQ(fits(*wheel, "3.11", "x86_64", *parse_version("2.28")), one.fits) << one.name;
  }
}

TEST(WheelName, OfAFreeThreadedPython) {
  const std::pair<const char*, bool> cases[] = {
      {"a-1-cp313-cp313t-manylinux_2_28_x86_64.whl", true},
      {"a-1-cp313-cp313-manylinux_2_28_x86_64.whl", false},
      {"a-1-cp38-abi3-manylinux_2_28_x86_64.whl", false},
      {"a-1-py3-none-any.whl", true}};
  for (const auto& [name, expected] : cases)
    EXPECT_EQ(fits(*parse_wheel_name(name), "3.13t", "x86_64", *parse_version("2.28")), expected)
        << name;
}

}  // namespace wheel_name_test
}  // namespace cufit::formats
