// SPDX-License-Identifier: Apache-2.0
#include "formats/binary/ld_cache.h"

#include <gtest/gtest.h>

#include <cstring>

namespace cufit::formats {
namespace ld_cache_test {

void put32(std::string& out, uint32_t value) {
  out.append(reinterpret_cast<const char*>(&value), 4);
}
void put64(std::string& out, uint64_t value) {
  out.append(reinterpret_cast<const char*>(&value), 8);
}

struct Row {
  uint32_t flags;
  std::string name, path;
  uint64_t hwcap;
};

// A cache as ldconfig writes it; with `old_entries` > 0 behind a table of the old format.
std::string make_cache(const std::vector<Row>& rows, const std::vector<std::string>& hwcaps = {},
                       uint32_t old_entries = 0) {
  std::string front;
  if (old_entries) {
    front = "ld.so-1.7.0";
    front.resize(12);
    put32(front, old_entries);
    front.resize((front.size() + old_entries * 12 + 7) / 8 * 8);
  }
  std::string strings, entries;
  uint32_t base = 48 + static_cast<uint32_t>(rows.size()) * 24;
  for (const Row& row : rows) {
    put32(entries, row.flags);
    put32(entries, base + static_cast<uint32_t>(strings.size()));
    strings += row.name + '\0';
    put32(entries, base + static_cast<uint32_t>(strings.size()));
    strings += row.path + '\0';
    put32(entries, 0);
    put64(entries, row.hwcap);
  }
  std::vector<uint32_t> names;
  for (const std::string& name : hwcaps) {
    names.push_back(static_cast<uint32_t>(front.size()) + base +
                    static_cast<uint32_t>(strings.size()));
    strings += name + '\0';
  }
  while ((front.size() + base + strings.size()) % 4) strings += '\0';
  uint32_t extension =
      hwcaps.empty() ? 0 : static_cast<uint32_t>(front.size() + base + strings.size());
  std::string header = "glibc-ld.so.cache1.1";
  put32(header, static_cast<uint32_t>(rows.size()));
  put32(header, static_cast<uint32_t>(strings.size()));
  put32(header, 2);
  put32(header, extension);
  header.resize(48);
  std::string out = front + header + entries + strings;
  if (extension) {
    put32(out, 0xeaa42174);
    put32(out, 1);
    put32(out, 1);
    put32(out, 0);
    put32(out, static_cast<uint32_t>(out.size() + 8));
    put32(out, static_cast<uint32_t>(names.size() * 4));
    for (uint32_t name : names) put32(out, name);
  }
  return out;
}

const std::vector<Row> k_rows = {
    {0x0303, "libcudart.so.12", "/usr/local/cuda/lib64/libcudart.so.12", 0},
    {0x0303, "libcuda.so.1", "/lib/x86_64-linux-gnu/libcuda.so.1", 0},
    {0x0003, "libcuda.so.1", "/lib/i386-linux-gnu/libcuda.so.1", 0},
    {0x0a03, "libcuda.so.1", "/lib/aarch64-linux-gnu/libcuda.so.1", 0},
};

TEST(LdCache, FindsByNameAndArchitecture) {
  for (uint32_t old_entries : {0u, 1u, 2u, 7u}) {
    auto cache = parse_ld_cache(make_cache(k_rows, {}, old_entries));
    ASSERT_TRUE(cache) << cache.error().text();
    EXPECT_EQ(cache->entries.size(), 4u);
    EXPECT_TRUE(cache->damage.empty());
    auto found = cache->find("libcuda.so.1", "x86_64");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]->path, "/lib/x86_64-linux-gnu/libcuda.so.1");
    found = cache->find("libcuda.so.1", "aarch64");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]->path, "/lib/aarch64-linux-gnu/libcuda.so.1");
    EXPECT_TRUE(cache->find("libcuda.so", "x86_64").empty());
    EXPECT_TRUE(cache->find("libcuda.so.1", "riscv64").empty());
  }
}

TEST(LdCache, NamesHwcapsDirectories) {
  const uint64_t named = uint64_t{1} << 62;
  for (uint32_t old_entries : {0u, 3u}) {
    auto cache = parse_ld_cache(make_cache({{0x303, "a.so", "/h/x86-64-v4/a.so", named | 1},
                                            {0x303, "a.so", "/h/haswell/a.so", 4},
                                            {0x303, "a.so", "/lib/a.so", 0},
                                            {0x303, "a.so", "/h/lost/a.so", named | 9}},
                                           {"x86-64-v3", "x86-64-v4"}, old_entries));
    ASSERT_TRUE(cache) << cache.error().text();
    ASSERT_EQ(cache->entries.size(), 3u);
    EXPECT_EQ(cache->entries[0].hwcaps, "x86-64-v4");
    EXPECT_TRUE(cache->entries[1].legacy_hwcap);
    EXPECT_FALSE(cache->entries[2].legacy_hwcap);
  }
}

TEST(LdCache, RefusesWhatIsNoCache) {
  for (const std::string& bytes :
       {std::string(), std::string("ld.so-1.7.0"), std::string("ld.so-1.7.0\0\xff\xff\xff\xff", 16),
        std::string("glibc-ld.so.cache1.1"), std::string(4096, '\0')}) {
    auto cache = parse_ld_cache(bytes);
    ASSERT_FALSE(cache);
    EXPECT_EQ(cache.error().code, Code::malformed);
  }
}

TEST(LdCache, KeepsWhatAnEarlyEndLeaves) {
  std::string whole = make_cache(k_rows);
  for (size_t size = 48; size + 4 < whole.size();
       ++size) {  // the last bytes pad to a multiple of 4
    auto cache = parse_ld_cache(whole.substr(0, size));
    ASSERT_TRUE(cache);
    EXPECT_FALSE(cache->damage.empty()) << size;
    EXPECT_LT(cache->entries.size(), 4u) << size;
  }
}

TEST(LdCache, OffsetsOutsideTheFileAreDamage) {
  std::string bytes = make_cache(k_rows);
  std::memset(&bytes[48 + 4], 0xff, 4);  // name of the first entry
  auto cache = parse_ld_cache(bytes);
  ASSERT_TRUE(cache);
  EXPECT_EQ(cache->entries.size(), 3u);
  ASSERT_EQ(cache->damage.size(), 1u);
  EXPECT_EQ(cache->damage[0].offset, 48u);
}

// The last record of the file is the extension's names; its size says one more than there are.
TEST(LdCache, ExtensionsThatReachPastTheEndAreDamage) {
  const std::vector<std::string> hwcaps = {"x86-64-v3", "x86-64-v4"};
  const std::string whole = make_cache(k_rows, hwcaps, 0);
  const size_t size_at = whole.size() - hwcaps.size() * 4 - 4;
  EXPECT_TRUE(parse_ld_cache(whole)->damage.empty());
  for (const uint32_t size : {9u, 12u, 0xffffffffu}) {
    std::string bytes = whole;
    std::memcpy(&bytes[size_at], &size, 4);
    const auto cache = parse_ld_cache(bytes);
    ASSERT_TRUE(cache);
    EXPECT_EQ(cache->entries.size(), k_rows.size());
    ASSERT_EQ(cache->damage.size(), 1u) << size;
    EXPECT_NE(cache->damage[0].what.find("past the end"), std::string::npos);
  }
}

}  // namespace ld_cache_test
}  // namespace cufit::formats
