// SPDX-License-Identifier: Apache-2.0
#include "formats/archive/tar.h"

#include <gtest/gtest.h>

#include "support/tar_builder.h"

namespace cufit::formats {
namespace tar_test {

using test::build_tar;
using test::pax_record;
using test::tar_entry;
using test::tar_header;

class Text final : public ByteStream {
 public:
  explicit Text(std::string bytes) : bytes_(std::move(bytes)) {}
  const std::string& name() const override { return name_; }
  Result<size_t> read(std::span<std::byte> out) override {
    const size_t size = std::min(out.size(), bytes_.size() - at_);
    std::memcpy(out.data(), bytes_.data() + at_, size);
    at_ += size;
    return size;
  }
  Result<bool> jump(uint64_t size) {
    if (size > bytes_.size() - at_) return false;
    at_ += static_cast<size_t>(size);
    return true;
  }

 private:
  std::string name_ = "t", bytes_;
  size_t at_ = 0;
};

// "path type size content" of each entry, or the error.
std::string listed(const std::string& bytes, bool jump = false, const TarLimits& limits = {}) {
  Text text(bytes);
  TarReader tar = jump ? TarReader(text, limits, [&](uint64_t n) { return text.jump(n); })
                       : TarReader(text, limits);
  std::string out;
  while (true) {
    auto entry = tar.next();
    if (!entry) return out + "! " + entry.error().what;
    if (!*entry) return out;
    out += (*entry)->path + " " + std::to_string(static_cast<int>((*entry)->type)) + " " +
           std::to_string((*entry)->size_bytes);
    if (!(*entry)->link.empty()) out += " -> " + (*entry)->link;
    // The contents of every second entry are left unread: the reader skips them.
    if ((*entry)->size_bytes % 2 == 1) {
      std::string content(static_cast<size_t>((*entry)->size_bytes) + 5, '\0');
      auto got = tar.read(std::as_writable_bytes(std::span(content)));
      if (!got) return out + "! " + got.error().what;
      out += " " + content.substr(0, *got);
    }
    out += "\n";
  }
}

TEST(Tar, ListsEntriesOfEachTypeWithTheirContents) {
  const std::string tar = build_tar({{"./", "", '5'},
                                     {"./a/b.txt", "odd", '0'},
                                     {"skipped", std::string(1000, 'x')},
                                     {"link", "", '2', "../target"},
                                     {"hard", "", '1', "a/b.txt"},
                                     {"old/", "", '\0'},
                                     {"dev", "", '3'}});
  for (const bool jump : {false, true})
    EXPECT_EQ(listed(tar, jump),
              "./ 1 0\n./a/b.txt 0 3 odd\nskipped 0 1000\nlink 2 0 -> ../target\n"
              "hard 3 0 -> a/b.txt\nold/ 1 0\ndev 4 0\n");
}

TEST(Tar, LongNamesOfGnuAndPax) {
  const std::string path(300, 'p'), link(200, 'l');
  std::string tar =
      tar_entry({"././@LongLink", path + '\0', 'L'}) +
      tar_entry({"././@LongLink", link + '\0', 'K'}) + tar_entry({"short", "", '2', "short"}) +
      tar_entry({"PaxHeader", pax_record("path", "p/ä") + pax_record("mtime", "1.5"), 'x'}) +
      tar_entry({"other", "abc"}) + tar_entry({"plain", "d"});
  EXPECT_EQ(listed(tar), path + " 2 0 -> " + link + "\np/ä 0 3 abc\nplain 0 1 d\n");
}

// A record of type g speaks for all entries that follow, one of type x for the next alone and
// before it. A global size would be one for all entries: it is not taken.
TEST(Tar, GlobalPaxRecordsHoldForAllEntries) {
  const std::string tar =
      tar_entry({"first", "a"}) +
      tar_entry({"PaxHeader", pax_record("path", "all") + pax_record("size", "4"), 'g'}) +
      tar_entry({"second", "b"}) + tar_entry({"PaxHeader", pax_record("path", "own"), 'x'}) +
      tar_entry({"third", "c"}) + tar_entry({"fourth", "d"});
  EXPECT_EQ(listed(tar), "first 0 1 a\nall 0 1 b\nown 0 1 c\nall 0 1 d\n");
  const std::string links = tar_entry({"PaxHeader", pax_record("linkpath", "there"), 'g'}) +
                            tar_entry({"one", "", '2', "x"}) + tar_entry({"two", "", '2', "y"});
  EXPECT_EQ(listed(links), "one 2 0 -> there\ntwo 2 0 -> there\n");
  // What `git archive` writes.
  EXPECT_EQ(listed(tar_entry({"pax_global_header", pax_record("comment", "0123abcd"), 'g'}) +
                   tar_entry({"name", "a"})),
            "name 0 1 a\n");
}

TEST(Tar, PaxSizeGoesBeforeTheHeaders) {
  const std::string tar = tar_entry({"PaxHeader", pax_record("size", "5"), 'x'}) +
                          tar_header({"big", ""}, 0) + test::padded("12345") +
                          tar_entry({"next", "z"});
  EXPECT_EQ(listed(tar), "big 0 5 12345\nnext 0 1 z\n");
}

TEST(Tar, NumbersInBase256) {
  std::string header = tar_header({"big", ""}, 0);
  header.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\x03", 12));
  header.replace(148, 8, "        ");
  unsigned long sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  header.replace(148, 8, test::octal(sum, 6) + std::string(1, '\0') + " ");
  EXPECT_EQ(listed(header + test::padded("abc")), "big 0 3 abc\n");
}

TEST(Tar, NamesTheByteOfDamage) {
  const std::string good = build_tar({{"a", "content"}, {"b", "x"}});
  std::string broken = good;
  broken[1024] = 'z';
  EXPECT_EQ(
      listed(broken),
      "a 0 7 content\n! t: damaged tar archive at byte 1024: no tar header (its checksum does "
      "not hold)");
  EXPECT_EQ(listed(good.substr(0, 600)),
            "a 0 7 content\n! t: damaged tar archive at byte 600: the archive ends before its "
            "contents do");
  for (const bool jump : {false, true})
    EXPECT_EQ(listed(tar_header({"a", ""}, 1000000), jump).substr(0, 16), "a 0 1000000\n! t:");
  EXPECT_EQ(listed(good.substr(0, 1024)), "a 0 7 content\n");  // without the zeros at the end
}

TEST(Tar, RefusesPaxRecordsThatLie) {
  for (const std::string& record :
       {std::string("99 path=x\n"), std::string("x path=x\n"), std::string("5 =\n"),
        std::string("3 \n"), std::string("8 path=x")})
    EXPECT_NE(listed(tar_entry({"PaxHeader", record, 'x'}) + tar_entry({"a", "b"})).find("pax"),
              std::string::npos)
        << record;
  TarLimits limits;
  limits.extension_bytes = 100;
  EXPECT_NE(listed(tar_entry({"x", std::string(101, 'a'), 'L'}), false, limits).find("101 bytes"),
            std::string::npos);
  limits.entries = 1;
  EXPECT_NE(listed(build_tar({{"a", ""}, {"b", ""}}), false, limits).find("more than 1 entries"),
            std::string::npos);
}

TEST(Tar, KnowsATarByItsFirstBlock) {
  EXPECT_TRUE(is_tar(build_tar({{"a", ""}}).substr(0, 512)));
  EXPECT_FALSE(is_tar(std::string(512, '\0')));
  EXPECT_FALSE(is_tar(std::string(512, 'x')));
  EXPECT_FALSE(is_tar("short"));
}

}  // namespace tar_test
}  // namespace cufit::formats
