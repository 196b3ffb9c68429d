// SPDX-License-Identifier: Apache-2.0
#include "formats/binary/fatbin.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "support/elf_builder.h"

namespace cufit::formats {
namespace fatbin_test {

using tests::build_container;
using tests::build_entry;
using tests::cubin;
using tests::EntrySpec;
using tests::ptx;
using tests::put;

struct Walked {
  std::string entries;  // "cubin 80, ptx 90@8.7"
  std::string damage;
};

Walked walk(const std::string& bytes, uint64_t offset = 0) {
  std::vector<std::string> entries, damage;
  std::vector<Damage> list;
  walk_fatbin(
      MemorySource("f", bytes), offset, bytes.size() - offset,
      [&](const FatbinEntry& entry) {
        std::string isa = entry.ptx_isa();
        entries.push_back(format("{} {}{}{}", to_string(entry.code_kind()), entry.arch(),
                                 isa.empty() ? "" : "@", isa));
      },
      list);
  for (const Damage& d : list) damage.push_back(format("{}: {}", d.offset, d.what));
  return {join(entries, ", "), join(damage, "; ")};
}

TEST(Fatbin, EveryKindAndSuffix) {
  const struct {
    uint16_t kind;
    uint32_t arch;
    uint64_t flags;
    const char* text;
  } k_rows[] = {
      // Flags as nvcc 13.0 writes them for each target.
      {2, 90, 0x11, "cubin 90"},
      {2, 90, 0x100011, "cubin 90a"},
      {2, 100, 0x1000011, "cubin 100"},
      {2, 100, 0x1100011, "cubin 100a"},
      {2, 100, 0x1200011, "cubin 100f"},
      {2, 120, 0x1200011, "cubin 120f"},
      {2, 75, 0x8011, "cubin 75"},
      {1, 90, 0x2011, "ptx 90@8.7"},
      {1, 120, 0x1108011, "ptx 120a@8.7"},
      {0x40, 80, 0x11, "ptx 80@8.7"},
      {8, 89, 0x11, "lto 89"},
      {0x10, 100, 0x11, "other 100"},
      {0x20, 0, 0, "other 0"},
      {0x80, 100, 0x11, "other 100"},
      {0x100, 100, 0x11, "other 100"},
      {0x4000, 1, 0, "other 1"},
  };
  for (const auto& row : k_rows) {
    EntrySpec entry;
    entry.kind = row.kind, entry.arch = row.arch, entry.flags = row.flags, entry.major = 8,
    entry.minor = 7;
    Walked walked = walk(build_container({entry}));
    EXPECT_EQ(walked.entries, row.text);
    EXPECT_EQ(walked.damage, "");
  }
}

TEST(Fatbin, ContainersInARow) {
  EntrySpec named = cubin(86);
  named.name = "kernel.cu";
  std::string bytes = build_container({cubin(80), named, ptx(90, 8, 5)}) +
                      build_container({cubin(120, 'f')}) + build_container({}) +
                      build_container({ptx(120, 9, 0)}, 0x1EE55A01);
  Walked walked = walk(bytes);
  EXPECT_EQ(walked.entries, "cubin 80, cubin 86, ptx 90@8.5, cubin 120f, ptx 120@9.0");
  EXPECT_EQ(walked.damage, "");
}

TEST(Fatbin, ZerosBetweenContainersAreNoDamageAndOtherBytesAre) {
  std::string one = build_container({cubin(80)}), two = build_container({cubin(90)});
  Walked zeros = walk(one + std::string(24, '\0') + two + std::string(5, '\0'));
  EXPECT_EQ(zeros.entries, "cubin 80, cubin 90");
  EXPECT_EQ(zeros.damage, "");
  Walked junk = walk(one + std::string(24, 'j') + two);
  EXPECT_EQ(junk.entries, "cubin 80, cubin 90");
  EXPECT_EQ(junk.damage, format("{}: 24 bytes of a fatbin section are no container", one.size()));
}

TEST(Fatbin, SearchesOnFileBoundariesOfEight) {
  std::string bytes = std::string(4, 'p') + std::string(12, '\0') + build_container({cubin(80)});
  EXPECT_EQ(walk(bytes, 4).entries, "cubin 80");  // the section starts at 4, the container at 16
}

TEST(Fatbin, ABrokenContainerCostsOnlyItself) {
  const std::string one = build_container({cubin(80), cubin(86)}),
                    two = build_container({cubin(90)});
  const struct {
    const char* name;
    size_t at;
    uint64_t value;
    size_t bytes;
    const char* entries;
    const char* damage;
  } k_rows[] = {
      {"size over the section", 8, 1u << 20, 8, "cubin 80, cubin 86, cubin 90",
       "0: a fatbin container of 1048576 bytes reaches"},
      {"size of all ones", 8, UINT64_MAX, 8, "cubin 80, cubin 86, cubin 90",
       "reaches past the end of its section"},
      {"header of 0 bytes", 6, 0, 2, "cubin 90", "0: a fatbin container with a header of 0 bytes"},
      {"entry of kind 0", 16, 0, 2, "cubin 90", "16: a fatbin entry of kind 0"},
      {"entry header of 0 bytes", 20, 0, 4, "cubin 90",
       "16: a fatbin entry of kind 2 with a header of 0 bytes"},
      {"entry header over the container", 20, 0xffffffff, 4, "cubin 90",
       "with a header of 4294967295 bytes"},
      {"payload over the container", 24, UINT64_MAX - 7, 8, "cubin 80, cubin 90",
       "16: a fatbin entry's payload of"},
      {"no magic", 0, 0, 4, "cubin 90", "0: 192 bytes of a fatbin section are no container"},
  };
  for (const auto& row : k_rows) {
    std::string bad = one + two;
    put(bad, row.at, row.value, row.bytes);
    Walked walked = walk(bad);
    EXPECT_EQ(walked.entries, row.entries) << row.name;
    EXPECT_TRUE(contains(walked.damage, row.damage)) << row.name << ": " << walked.damage;
  }
}

TEST(Fatbin, ASectionPastTheFileIsCut) {
  std::string bytes = build_container({cubin(80)});
  std::vector<Damage> damage;
  int entries = 0;
  auto count = [&](const FatbinEntry&) { ++entries; };
  walk_fatbin(MemorySource("f", bytes), 0, bytes.size() + 100, count, damage);
  EXPECT_EQ(entries, 1);
  ASSERT_EQ(damage.size(), 1u);
  walk_fatbin(MemorySource("f", bytes), UINT64_MAX - 3, 100, count, damage);
  walk_fatbin(MemorySource("f", bytes), 8, UINT64_MAX, count, damage);
  EXPECT_EQ(entries, 1);
}

TEST(Fatbin, TruncatedAnywhere) {
  const std::string good =
      build_container({cubin(80), ptx(90, 8, 0)}) + build_container({cubin(120)});
  for (size_t size = 0; size < good.size(); ++size) {
    Walked walked = walk(good.substr(0, size));
    EXPECT_TRUE(starts_with("cubin 80, ptx 90@8.0, cubin 120", walked.entries))
        << size << ": " << walked.entries;
  }
}

TEST(Fatbin, TheTableCountsAndSorts) {
  CodeTable table;
  std::vector<Damage> damage;
  std::string bytes;
  for (int i = 0; i < 3; ++i)
    bytes += build_container({ptx(90, 8, 7), cubin(100, 'f'), cubin(100), cubin(90, 'a'), cubin(90),
                              cubin(75), ptx(90, 8, 5), ptx(75, 9, 0), cubin(100, 'a')});
  bytes += build_container({cubin(75)});
  walk_fatbin(
      MemorySource("f", bytes), 0, bytes.size(),
      [&](const FatbinEntry& entry) { table.add(entry); }, damage);
  std::vector<std::string> out;
  for (const DeviceCode& code : table.sorted())
    out.push_back(format("{} {} {} {}", to_string(code.kind), code.arch, code.ptx_isa, code.count));
  EXPECT_EQ(join(out, ","),
            "cubin 75  4,cubin 90  3,cubin 90a  3,cubin 100  3,cubin 100a  3,cubin 100f  3,"
            "ptx 75 9.0 3,ptx 90 8.5 3,ptx 90 8.7 3");
  EXPECT_FALSE(table.overflowed());
}

TEST(Fatbin, TheTableIsBounded) {
  CodeTable table;
  FatbinEntry entry;
  entry.kind = k_fatbin_cubin;
  for (entry.architecture = 0; entry.architecture < 5000; ++entry.architecture) table.add(entry);
  EXPECT_TRUE(table.overflowed());
  EXPECT_EQ(table.sorted().size(), 512u);
}

}  // namespace fatbin_test
}  // namespace cufit::formats
