// SPDX-License-Identifier: Apache-2.0
#include "formats/archive/zip.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/format.h"
#include "support/places.h"

namespace cufit::formats {
namespace zip_test {

struct Member {
  std::string name, bytes;
  bool deflate = false;
  uint64_t claimed_size = UINT64_MAX;  // written instead of the real size
};

void append(std::string& out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

// A deflate stream of stored blocks (RFC 1951, 3.2.4): inflated by the same code as any other,
// longer than its text.
std::string deflated(const std::string& bytes) {
  std::string out;
  size_t at = 0;
  do {
    size_t part = std::min<size_t>(bytes.size() - at, 0xffff);
    append(out, at + part == bytes.size() ? 1 : 0, 1);
    append(out, part, 2), append(out, ~part & 0xffff, 2);
    out += bytes.substr(at, part);
    at += part;
  } while (at < bytes.size());
  return out;
}

uint32_t crc32_of(const std::string& bytes) {  // APPNOTE 4.4.7
  uint32_t crc = 0xffffffff;
  for (char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc;
}

// APPNOTE 4.3.7 (local header), 4.3.12 (directory), 4.3.16 (end record).
std::string build_zip(const std::vector<Member>& members, uint64_t claimed_count = UINT64_MAX) {
  std::string out, directory;
  for (const Member& member : members) {
    std::string data = member.deflate ? deflated(member.bytes) : member.bytes;
    std::string common;
    append(common, 20, 2), append(common, 0, 2), append(common, member.deflate ? 8 : 0, 2),
        append(common, 0, 4);
    append(common, crc32_of(member.bytes), 4);
    append(common, data.size(), 4);
    append(common, member.claimed_size == UINT64_MAX ? member.bytes.size() : member.claimed_size,
           4);
    append(common, member.name.size(), 2), append(common, 0, 2);
    directory += std::string("PK\1\2") + std::string("\x14\0", 2) + common;
    append(directory, 0, 2), append(directory, 0, 2), append(directory, 0, 2),
        append(directory, 0, 4);
    append(directory, out.size(), 4);
    directory += member.name;
    out += "PK\3\4" + common + member.name + data;
  }
  uint64_t at = out.size(), count = claimed_count == UINT64_MAX ? members.size() : claimed_count;
  out += directory + "PK\5\6";
  append(out, 0, 4), append(out, count, 2), append(out, count, 2), append(out, directory.size(), 4),
      append(out, at, 4);
  append(out, 0, 2);
  return out;
}

Result<ZipFile> open(const std::string& bytes, const ZipLimits& limits = {}) {
  return ZipFile::open(std::make_shared<MemorySource>("a.whl", bytes), limits);
}

TEST(Zip, ReadsStoredAndDeflatedMembers) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i * 7919);
  Result<ZipFile> zip = open(build_zip({{"a/x.so", "short"}, {"b.so", text, true}, {"empty", ""}}));
  ASSERT_TRUE(zip) << zip.error().text();
  ASSERT_EQ(zip->members().size(), 3u);
  EXPECT_EQ(zip->members()[0].name, "a/x.so");
  EXPECT_EQ(zip->members()[1].size_bytes, text.size());
  EXPECT_EQ(zip->members()[1].compressed_bytes, text.size() + 5);  // one block's header
  uint64_t last = 0;
  EXPECT_EQ(zip->read(zip->members()[1],
                      [&](uint64_t done, uint64_t total) {
                        EXPECT_GT(done, last);
                        EXPECT_EQ(total, text.size());
                        last = done;
                      })
                .value_or(""),
            text);
  EXPECT_EQ(last, text.size());
  EXPECT_EQ(zip->read(zip->members()[0]).value_or(""), "short");
  EXPECT_EQ(zip->read(zip->members()[2]).value_or("?"), "");
  EXPECT_EQ(zip->read_start(zip->members()[1], 4).value_or(""), text.substr(0, 4));
  EXPECT_EQ(zip->read_start(zip->members()[0], 100).value_or(""), "short");
}

TEST(Zip, ReadsWhatPythonWrote) {
  std::stringstream bytes;
  bytes << std::ifstream(cufit::test::source_dir() + "/fuzz/seeds/zip/deflated", std::ios::binary)
               .rdbuf();
  Result<ZipFile> zip = open(bytes.str());
  ASSERT_TRUE(zip) << zip.error().text();
  ASSERT_EQ(zip->members().size(), 2u);
  EXPECT_EQ(zip->members()[1].name, "d/METADATA");
  EXPECT_LT(zip->members()[1].compressed_bytes, zip->members()[1].size_bytes);
  EXPECT_EQ(zip->read(zip->members()[0]).value_or(""),
            "\x7f"
            "ELF" +
                std::string(60, 'x'));
  std::string lines;
  for (int i = 0; i < 9; ++i) lines += "Name: x\n";
  EXPECT_EQ(zip->read(zip->members()[1]).value_or(""), lines);
}

TEST(Zip, ACutOffFileIsAnErrorThatSaysSo) {
  std::string good =
      build_zip({{"a.so", std::string(500, 'a')}, {"b.so", std::string(500, 'b'), true}});
  for (size_t size = 0; size < good.size(); ++size) {
    Result<ZipFile> zip = open(good.substr(0, size));
    ASSERT_FALSE(zip) << size;
    EXPECT_EQ(zip.error().code, Code::malformed);
    EXPECT_TRUE(contains(zip.error().what, "`a.whl`")) << zip.error().what;
  }
}

TEST(Zip, ADamagedMemberIsNamedWithItsPlace) {
  std::string text(100000, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i * i % 23);
  const std::string good = build_zip({{"lib/a.so", text}});
  std::string bad = good;
  bad[50000] ^= 1;  // stored data: only the checksum can tell
  Result<ZipFile> zip = open(bad);
  ASSERT_TRUE(zip);
  Result<std::string> bytes = zip->read(zip->members()[0]);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, Code::malformed);
  EXPECT_TRUE(contains(bytes.error().what, "`a.whl`: member `lib/a.so`: CRC error (after "))
      << bytes.error().what;
}

TEST(Zip, BombsAreRefused) {
  ZipLimits limits;
  limits.ratio_from = 1u << 20;
  Result<ZipFile> zip =
      open(build_zip({{"bomb.so", std::string(100, '\0'), true, 8u << 20}}), limits);
  ASSERT_TRUE(zip);
  Result<std::string> bytes = zip->read(zip->members()[0]);
  ASSERT_FALSE(bytes);
  EXPECT_TRUE(contains(bytes.error().what, "more than 30 times")) << bytes.error().what;

  limits = {};
  limits.member_bytes = 100;
  zip = open(build_zip({{"large.so", std::string(101, 'x')}}), limits);
  ASSERT_TRUE(zip);
  bytes = zip->read(zip->members()[0]);
  ASSERT_FALSE(bytes);
  EXPECT_TRUE(contains(bytes.error().what, "over the limit of 100 bytes")) << bytes.error().what;

  limits = {};
  limits.members = 2;
  zip = open(build_zip({{"a", ""}, {"b", ""}, {"c", ""}}), limits);
  ASSERT_FALSE(zip);
  EXPECT_EQ(zip.error().code, Code::unsupported);
}

// Many entries of the directory for one member: what the archive holds once is not read many times.
TEST(Zip, MembersThatShareTheirBytesAreRefused) {
  const std::string zip = build_zip({{"a.so", std::string(300, 'a')}, {"b.so", "b"}});
  const size_t second = zip.find("PK\x01\x02", zip.find("PK\x01\x02") + 4);
  const size_t first = zip.find("PK\x01\x02");
  ASSERT_LT(second, zip.size());
  std::string shared =
      zip;  // b.so becomes the bytes of a.so: sizes, checksum and place (APPNOTE 4.3.12)
  for (const auto& [at, size] : {std::pair(16, 12), std::pair(42, 4)})
    shared.replace(second + static_cast<size_t>(at), static_cast<size_t>(size), zip,
                   first + static_cast<size_t>(at), static_cast<size_t>(size));
  ASSERT_TRUE(open(zip));
  const Result<ZipFile> opened = open(shared);
  ASSERT_FALSE(opened);
  EXPECT_TRUE(contains(opened.error().what, "share their bytes")) << opened.error().what;
}

// A size in the directory that is a lie costs no memory and no crash: it is refused or the member
// ends early.
TEST(Zip, LyingSizesAreErrors) {
  for (uint64_t claimed :
       {uint64_t{0}, uint64_t{499}, uint64_t{501}, uint64_t{1} << 31, uint64_t{0xfffffffe}}) {
    for (bool deflate : {false, true}) {
      Result<ZipFile> zip = open(build_zip({{"a.so", std::string(500, 'a'), deflate, claimed}}));
      if (!zip) continue;
      for (const ZipMember& member : zip->members())
        EXPECT_FALSE(zip->read(member)) << claimed << deflate;
    }
  }
  EXPECT_FALSE(open(build_zip({{"a.so", "x"}}, 60000)));
}

TEST(Zip, DamagedAnywhere) {
  const std::string good =
      build_zip({{"a.so", std::string(60, 'a')}, {"b.so", std::string(300, 'b'), true}});
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0xff);
    Result<ZipFile> zip = open(bad);
    if (!zip) continue;
    for (const ZipMember& member : zip->members()) {
      Result<std::string> bytes = zip->read(member);
      if (bytes) {
        EXPECT_LE(bytes->size(), 300u) << i;
      }
    }
  }
}

}  // namespace zip_test
}  // namespace cufit::formats
