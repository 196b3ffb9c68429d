// SPDX-License-Identifier: Apache-2.0
#include "formats/python/pylock.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace cufit::formats {
namespace pylock_test {

constexpr const char* k_lock = R"(# a comment
lock-version = "1.0"
created-by = "uv"
requires-python = ">=3.11"

[[packages]]
name = "Nvidia_cuBLAS.cu12"
version = "12.6.4.1"
marker = "platform_machine == 'x86_64' and sys_platform == 'linux'"
index = "https://index.example/simple"
wheels = [
  { url = "https://index.example/a/nvidia_cublas_cu12-12.6.4.1-py3-none-manylinux_2_27_x86_64.whl#x", upload-time = 2025-03-07T01:44:31Z, size = 1000, hashes = { sha256 = "AB12" } },
  { name = "other.whl", path = "wheels/other.whl", size = 3000, hashes = { sha256 = "cd", md5 = "ef" } },
]

[[packages]]
name = "torch"
version = "2.7.1+cu126"
wheels = [{ url = "https://index.example/torch-2.7.1%2Bcu126-cp311-cp311-manylinux_2_28_x86_64.whl", size = 20, hashes = { sha256 = "00" } }]

[packages.tool.cufit]
note = "skipped"

[[packages]]
name = "windows-only"
version = "1"
marker = "sys_platform == 'win32'"
sdist = { url = "https://index.example/windows-only-1.tar.gz", size = 7, hashes = { sha256 = "00" } }

[[packages]]
name = "mine"
directory = { path = "../mine", editable = true }

[[packages]]
name = "theirs"
vcs = { type = "git", url = "https://git.example/theirs", commit-id = "0123" }
)";

std::string problem_of(const std::string& text) {
  const Result<Pylock> lock = parse_pylock(text, "pylock.toml");
  return lock ? "" : lock.error().text();
}

TEST(Pylock, IsRead) {
  const Result<Pylock> lock = parse_pylock(k_lock, "pylock.toml");
  ASSERT_TRUE(lock) << lock.error().text();
  EXPECT_EQ(lock->created_by, "uv");
  EXPECT_EQ(lock->requires_python, ">=3.11");
  ASSERT_EQ(lock->packages.size(), 5u);
  const PylockPackage& cublas = lock->packages[0];
  EXPECT_EQ(cublas.name, "nvidia-cublas-cu12");
  EXPECT_EQ(cublas.line, 6u);
  EXPECT_EQ(cublas.index, "https://index.example/simple");
  ASSERT_EQ(cublas.wheels.size(), 2u);
  EXPECT_EQ(cublas.wheels[0].name,
            "nvidia_cublas_cu12-12.6.4.1-py3-none-manylinux_2_27_x86_64.whl");
  EXPECT_EQ(cublas.wheels[0].hashes[0].second, "ab12");
  EXPECT_EQ(cublas.wheels[1].path, "wheels/other.whl");
  EXPECT_EQ(cublas.wheels[1].hashes.size(), 2u);
  EXPECT_EQ(lock->packages[2].sdist->size, 7u);
  EXPECT_EQ(lock->packages[3].directory, "../mine");
  EXPECT_EQ(lock->packages[4].vcs, "git https://git.example/theirs");
  EXPECT_EQ(find_package(*lock, "torch"), &lock->packages[1]);
  EXPECT_EQ(find_package(*lock, "absent"), nullptr);
}

TEST(Pylock, CountsWhatAppliesHere) {
  const Result<Pylock> lock = parse_pylock(k_lock, "pylock.toml");
  ASSERT_TRUE(lock);
  EXPECT_FALSE(applies(lock->packages[2], "3.11", "x86_64"));
  uint64_t unsized = 0;
  EXPECT_EQ(download_bytes(*lock, "3.11", "x86_64", &unsized), 3020u);  // the larger wheel
  EXPECT_EQ(unsized, 2u);
  EXPECT_EQ(download_bytes(*lock, "3.11", "aarch64"), 20u);
}

TEST(Pylock, NamesFileAndLineOfWhatIsWrong) {
  const std::string head = "lock-version = \"1.0\"\ncreated-by = \"x\"\n";
  EXPECT_EQ(problem_of("lock-version = \"1.0\"\n"), "pylock.toml, line 1: `created-by` is missing");
  EXPECT_EQ(problem_of(head), "pylock.toml, line 1: `packages` is missing");
  EXPECT_EQ(problem_of("lock-version = \"2.0\"\ncreated-by = \"x\"\npackages = []\n"),
            "pylock.toml: lock-version 2.0; this cufit reads 1.x");
  EXPECT_EQ(problem_of(head + "packages = 3\n"),
            "pylock.toml, line 3: `packages` is no list, or has more than 20000 entries");
  EXPECT_EQ(problem_of(head + "[[packages]]\nversion = \"1\"\n"),
            "pylock.toml, line 3: `name` is missing");
  EXPECT_EQ(problem_of(head + "[[packages]]\nname = \"a\"\n\nwheels = [{ url = \"u\" }]\n"),
            "pylock.toml, line 6: `u` has no `hashes`");
  EXPECT_EQ(
      problem_of(head + "[[packages]]\nname = \"a\"\nwheels = [{ hashes = { a = \"b\" } }]\n"),
      "pylock.toml, line 5: neither `url` nor `path`");
  EXPECT_EQ(problem_of(head + "[[packages]]\nname = \"a\"\nwheels = [{ url = \"u\", size = -1, "
                              "hashes = { a = \"b\" } }]\n"),
            "pylock.toml, line 5: `size` is no count of bytes");
  EXPECT_TRUE(starts_with(problem_of(head + "[[packages]\n"), "pylock.toml, line 3, "));
}

// toml++ 3.3 aborts on these when its assertions are on.
TEST(Pylock, DoesNotEndTheProgramWithALibrarysAssertion) {
  for (const char* text :
       {"[=", "[)]", "[[\x01", "a = 1\n[ %]\n", "l-\xEF\xBB\xB5", "a \xC3\xBF = 1"})
    EXPECT_NE(problem_of(text), "") << text;
}

TEST(Pylock, SumsThatOverflowStay) {
  std::string text = "lock-version = \"1.0\"\ncreated-by = \"x\"\n";
  for (int i = 0; i < 3; ++i)
    text += format(
        "[[packages]]\nname = \"p{}\"\nwheels = [{{ url = \"u\", size = {}, hashes = {{ a "
        "= \"b\" }} }}]\n",
        i, INT64_MAX);
  const Result<Pylock> lock = parse_pylock(text, "pylock.toml");
  ASSERT_TRUE(lock) << lock.error().text();
  EXPECT_EQ(download_bytes(*lock, "3.11", "x86_64"), UINT64_MAX);
}

}  // namespace pylock_test
}  // namespace cufit::formats
