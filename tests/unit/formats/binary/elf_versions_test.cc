// SPDX-License-Identifier: Apache-2.0
#include "formats/binary/elf_versions.h"
#include "support/places.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace cufit::formats {
namespace elf_versions_test {

// The fuzzing seed is a shared object with two versions, linked with a version script.
std::string seed() {
  std::ifstream file(cufit::test::source_dir() + "/fuzz/seeds/elf_versions/two_versions",
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(ElfVersions, ReadsTheDefinitions) {
  std::vector<Damage> damage;
  Result<std::vector<std::string>> names =
      read_version_definitions(MemorySource("v", seed()), damage);
  ASSERT_TRUE(names) << names.error().text();
  EXPECT_EQ(*names, (std::vector<std::string>{"libv.so", "GLIBCXX_3.4", "GLIBCXX_3.4.30"}));
  EXPECT_TRUE(damage.empty());
  EXPECT_EQ(highest_version(*names, "GLIBCXX_"), "3.4.30");
  EXPECT_EQ(highest_version(*names, "CXXABI_"), "");
}

TEST(ElfVersions, OrdersByNumber) {
  EXPECT_EQ(highest_version({"GLIBCXX_3.4.9", "GLIBCXX_3.4.30", "GLIBCXX_3.4", "GLIBCXX_DEBUG"},
                            "GLIBCXX_"),
            "3.4.30");
}

TEST(ElfVersions, EveryCutGivesLessAndNeverSomethingElse) {
  const std::string whole = seed();
  std::vector<Damage> ignored;
  const std::vector<std::string> all = *read_version_definitions(MemorySource("v", whole), ignored);
  for (size_t size = 0; size < whole.size(); size += 7) {
    std::vector<Damage> damage;
    Result<std::vector<std::string>> names =
        read_version_definitions(MemorySource("v", whole.substr(0, size)), damage);
    if (!names) continue;
    ASSERT_LE(names->size(), all.size()) << size;
    for (size_t i = 0; i < names->size(); ++i) EXPECT_EQ((*names)[i], all[i]) << size;
  }
}

TEST(ElfVersions, RefusesWhatIsNoElf) {
  std::vector<Damage> damage;
  EXPECT_FALSE(read_version_definitions(MemorySource("v", "text"), damage));
}

}  // namespace elf_versions_test
}  // namespace cufit::formats
