// SPDX-License-Identifier: Apache-2.0
#include "formats/binary/elf_start.h"

#include <gtest/gtest.h>

#include "support/elf_builder.h"

namespace cufit::formats {
namespace elf_start_test {

std::string number(uint64_t value, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out += i < 8 ? static_cast<char>(value >> (8 * i)) : '\0';
  return out;
}

std::string entry(uint32_t arch) {
  return number(2, 2) + number(0x101, 2) + number(64, 4) + number(8192, 8) + number(0, 8) +
         number(0, 4) + number(arch, 4) + number(0, 8) + number(1, 8) + number(0, 16) +
         std::string(8192, '\0');
}

std::string container(std::initializer_list<uint32_t> archs) {
  std::string entries;
  for (const uint32_t arch : archs) entries += entry(arch);
  return number(0xBA55ED50, 4) + number(1, 2) + number(16, 2) + number(entries.size(), 8) + entries;
}

std::string elf_head() {
  return std::string(
             "\x7f"
             "ELF\x02\x01\x01",
             7) +
         std::string(9, '\0') + number(3, 2) + number(62, 2) + std::string(44, '\0');
}

TEST(ElfStart, FindsTheFatbinsOfABeginning) {
  const std::string whole = elf_head() + container({80, 90}) + container({80});
  const auto read = read_elf_start(whole, whole.size(), "a.so");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->containers, 2u);
  ASSERT_EQ(read->file.device_code.size(), 2u);
  EXPECT_EQ(read->file.device_code[0].arch, "80");
  EXPECT_EQ(read->file.device_code[0].count, 2u);
  EXPECT_EQ(read->file.device_code[1].arch, "90");
  EXPECT_TRUE(read->file.damage.empty());
}

// Wherever it is cut: what was seen stays, nothing is made up.
TEST(ElfStart, OfABeginningThatIsCutAnywhere) {
  const std::string whole = elf_head() + container({80, 90});
  for (size_t size = 0; size < whole.size(); size += 7) {
    const auto read = read_elf_start(whole.substr(0, size), whole.size(), "a.so");
    EXPECT_EQ(read.has_value(), size >= 20) << size;
    if (!read) continue;
    EXPECT_EQ(read->seen_bytes, size);
    for (const DeviceCode& code : read->file.device_code)
      EXPECT_TRUE(code.arch == "80" || code.arch == "90") << code.arch;
  }
}

TEST(ElfStart, AMagicThatHeadsNoContainerIsNone) {
  std::string whole = elf_head() + container({80});
  whole[64 + 6] = 17;  // header size
  EXPECT_EQ(read_elf_start(whole, whole.size(), "a.so")->containers, 0u);
  EXPECT_FALSE(read_elf_start("PK\x03\x04 and so on, no shared object", 40, "a.so"));
}

}  // namespace elf_start_test
}  // namespace cufit::formats
