// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle/pickle.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <map>

#include "base/format.h"
#include "formats/archive/compressed_input.h"
#include "pickle_printer.h"

namespace cufit::formats {
namespace pickle_test {

using namespace std::string_literals;

std::string read(const std::string& bytes, size_t piece = 1 << 20,
                 const PickleLimits& limits = {}) {
  Pieces input(bytes, piece);
  TextPool texts;
  Printer sink(texts);
  Result<PickleResult> result = read_pickle(input, texts, sink, limits);
  return result ? sink.show(result->value) : result.error().what;
}

TEST(Pickle, ReadsEveryPlainOpcode) {
  const std::pair<std::string, std::string> cases[] = {
      {"N.", "None"},
      {"\x80\x02\x88.", "True"},
      {"I00\n.", "False"},
      {"I01\n.", "True"},
      {"I-12\n.", "-12"},
      {"L123L\n.", "123"},
      {"L18446744073709551615L\n.", "18446744073709551615"},
      {"L-99999999999999999999L\n.", "huge"},
      {"F1.5\n.", "1.5"},
      {"K\xff.", "255"},
      {"M\x01\x02.", "513"},
      {"J\xfe\xff\xff\xff.", "-2"},
      {"\x8a\x00."s, "0"},
      {"\x8a\x01\xff.", "-1"},
      {"\x8a\x03\x00\x00\x01."s, "65536"},
      {"\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."s, "-9223372036854775808"},
      {"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00."s, "9223372036854775808"},
      {"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01."s, "huge"},
      {"\x8a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff.", "-1"},
      {"\x8b\x02\x00\x00\x00\x10\x27."s, "10000"},
      {"G\x3f\xf8\x00\x00\x00\x00\x00\x00."s, "1.5"},
      {"S'it\\'s\\n\\x41'\n.", "'it's\nA'"},
      {"V\\u00e9\xe9\n.", "'\xc3\xa9\xc3\xa9'"},
      {"U\x02hi.", "'hi'"},
      {"T\x02\x00\x00\x00hi."s, "'hi'"},
      {"X\x02\x00\x00\x00hi."s, "'hi'"},
      {"\x8c\x02hi.", "'hi'"},
      {"\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi."s, "'hi'"},
      {"C\x02hi.", "b'hi'"},
      {"B\x02\x00\x00\x00hi."s, "b'hi'"},
      {"\x8e\x02\x00\x00\x00\x00\x00\x00\x00hi."s, "b'hi'"},
      {"\x96\x02\x00\x00\x00\x00\x00\x00\x00hi."s, "b'hi'"},
      {").", "()"},
      {"K\x01\x85.", "(1)"},
      {"K\x01K\x02\x86.", "(1, 2)"},
      {"K\x01K\x02K\x03\x87.", "(1, 2, 3)"},
      {"(K\x01K\x02K\x03K\x04t.", "(1, 2, 3, 4)"},
      {"].", "[]"},
      {"(l.", "[]"},
      {"(K\x01K\x02l.", "[1, 2]"},
      {"]K\x01"
       "a.",
       "[1]"},
      {"](K\x01K\x02"
       "e(K\x03"
       "e.",
       "[1, 2, 3]"},
      {"}.", "{}"},
      {"(d.", "{}"},
      {"(K\x01K\x02"
       "d.",
       "{1: 2}"},
      {"}K\x01K\x02s.", "{1: 2}"},
      {"}(K\x01K\x02K\x03K\x04u.", "{1: 2, 3: 4}"},
      {"\x80\x04\x95\x01\x00\x00\x00\x00\x00\x00\x00N."s, "None"},
      {"K\x01K\x02"
       "0.",
       "1"},
      {"K\x01(K\x02K\x03"
       "1.",
       "1"},
      {"K\x07"
       "2\x86.",
       "(7, 7)"},
      // the memo, with every pair of opcodes
      {"\x8c\x01xq\x05h\x05\x86.", "('x', 'x')"},
      {"\x8c\x01xr\x05\x00\x00\x00j\x05\x00\x00\x00\x86."s, "('x', 'x')"},
      {"\x8c\x01xp5\ng5\n\x86.", "('x', 'x')"},
      {"\x8c\x01x\x94h\x00\x86."s, "('x', 'x')"},
      {"K\x07\x94N\x94h\x00h\x01\x86\x87."s, "(7, None, (7, None))"},
      // a container that was put before it was filled
      {"]\x94(]\x94K\x01"
       "a"
       "h\x01"
       "e."s,
       "[[1], [1]]"},
      {"](}\x94(K\x01K\x02uh\x00"
       "e."s,
       "[{1: 2}, {1: 2}]"},
      {"](]\x94h\x00"
       "e."s,
       "[[], []]"},
  };
  for (const auto& [bytes, want] : cases) {
    for (size_t piece : {size_t{1}, size_t{7}, size_t{1} << 20}) {
      EXPECT_EQ(read(bytes, piece), want) << ::testing::PrintToString(bytes) << " by " << piece;
    }
  }
}

// The loop for usual opcodes works only far from the end of the window, so the same data is read
// with and without a long tail in the same window.
TEST(Pickle, UsualOpcodesMeanTheSameFarFromTheEnd) {
  const std::string data =
      "\x80\x04}\x94(\x8c\x01"
      "a\x94](K\xffM\x01\x02J\xfe\xff\xff\xff\x8a\x03\x00\x00\x01\x8a\x01\xff"
      "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00\x8a\x00"
      "eh\x01j\x01\x00\x00\x00u"s;
  std::string want = "{'a': [255, 513, -2, 65536, -1, 9223372036854775808, 0], 'a': 'a'}";
  EXPECT_EQ(read(data + "."), want);
  EXPECT_EQ(read(data + "." + std::string(100, 'x')), want);
  EXPECT_EQ(read(data + "." + std::string(100, 'x'), 3), want);
}

TEST(Pickle, RefusesWhatIsNotPlainData) {
  const std::pair<std::string, std::string> cases[] = {
      {"cos\nsystem\n(S'true'\ntR.", "GLOBAL at byte 0"},
      {"\x80\x02}q\x00"
       "cos\nsystem\n"s,
       "GLOBAL at byte 5"},
      {"\x80\x04\x8c\x02os\x8c\x06system\x93", "STACK_GLOBAL at byte 14"},
      {"NNR", "REDUCE at byte 2"},
      {"NNb", "BUILD at byte 2"},
      {"NN\x81", "NEWOBJ at byte 2"},
      {"NNN\x92", "NEWOBJ_EX at byte 3"},
      {"(ios\nx\n", "INST at byte 1"},
      {"(o", "OBJ at byte 1"},
      {"\x82\x01", "EXT1 at byte 0"},
      {"\x83\x01\x01", "EXT2 at byte 0"},
      {"\x84\x01\x01\x01\x01", "EXT4 at byte 0"},
      {"Pid\n", "PERSID at byte 0"},
      {"NQ", "BINPERSID at byte 1"},
      {"\x8f", "EMPTY_SET at byte 0"},
      {"\x97", "NEXT_BUFFER at byte 0"},
  };
  for (const auto& [bytes, want] : cases) {
    for (const std::string& tail : {""s, std::string(64, 'N')}) {
      std::string got = read(bytes + tail);
      EXPECT_NE(got.find("refused opcode " + want), std::string::npos) << got;
    }
  }
}

TEST(Pickle, SaysWhatIsWrongAndWhere) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "t.pkl: the pickle is cut off: it ends without STOP at byte 0"},
      {"NN", "it ends without STOP at byte 2"},
      {"J\x01\x02", "it ends within an opcode at byte 0"},
      {"N\x8c\x05hi", "it ends within an opcode at byte 1"},
      {"I12", "it ends within an opcode at byte 0"},
      {"hello", "memo entry 101"},
      {"\x1bxyz", "not a pickle: first byte 0x1b"},
      {"N\xff", "0xff, which is no pickle opcode, at byte 1"},
      {"\x80\x06N.", "pickle protocol 6 (known: 0 to 5) at byte 0"},
      {"NN.", "STOP with 2 values on the stack at byte 2"},
      {".", "STOP with 0 values"},
      {"(N.", "STOP with 1 values"},
      {"e", "no MARK to go back to at byte 0"},
      {"(e", "items without a container"},
      {"N(Ne", "items for a value of type None"},
      {"](N(Nu", "items for a value of type None"},
      {"}(Nu", "a key without a value"},
      {"Na", "too few values"},
      {"(Na", "too few values"},
      {"h\x05", "memo entry 5, which was never put"},
      {"Nr\xff\xff\xff\xff", "memo entry 4294967295 after only 0"},
      {"Ix\n.", "INT whose argument is no number"},
      {"Sx\n.", "STRING without quotes"},
      {"gx\n.", "GET whose argument is no number"},
      {"X\xff\xff\xff\xff", "a text of 4294967295 bytes"},
      {"\x8b\xff\xff\xff\x7f", "an int longer"},
      {"0", "no MARK to go back to"},
  };
  for (const auto& [bytes, want] : cases) {
    EXPECT_NE(read(bytes).find(want), std::string::npos) << read(bytes) << "\n" << want;
  }
}

TEST(Pickle, StaysWithinItsLimits) {
  PickleLimits limits;
  EXPECT_NE(read("]" + std::string(2000, '(')).find("too deep"), std::string::npos);
  limits.stack_values = 5000;
  EXPECT_NE(read(std::string(9000, 'N'), 1 << 20, limits).find("too many values"),
            std::string::npos);
  limits = {};
  limits.memo_entries = 10;
  EXPECT_NE(read("N" + std::string(20, '\x94'), 1 << 20, limits).find("memo"), std::string::npos);
  limits = {};
  limits.text_bytes = 1000;
  std::string text = "X" + "\x00\x00\x08\x00"s + std::string(0x80000, 'x') + ".";
  EXPECT_NE(read(text, 1 << 20, limits).find("limit 1000"), std::string::npos);
  EXPECT_EQ(read(text).size(), 0x80000u + 2);  // longer than a window
}

// The stack moves twice on the way (at 4096 and 8192 values).
TEST(Pickle, DoublesAValueWhileTheStackGrows) {
#ifdef M_PERTURB
  mallopt(M_PERTURB, 0x5a);  // what is freed is overwritten: a value that is read from there shows
#endif
  constexpr size_t k_doubled = 20000;
  const std::string got = read("(K\x07" + std::string(k_doubled, '2') + "t.");
  std::string want = "(7";
  for (size_t i = 0; i < k_doubled; ++i) want += ", 7";
#ifdef M_PERTURB
  mallopt(M_PERTURB, 0);
#endif
  EXPECT_TRUE(got == want + ")") << got.substr(0, 200);
}

TEST(Pickle, TruncatedAnywhereIsAnError) {
  std::string data =
      "\x80\x04\x95\x20\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"
      "a\x94](K\xffM\x01\x02"
      "J\xfe\xff\xff\xff\x8a\x03\x00\x00\x01"
      "eh\x01j\x01\x00\x00\x00u."s;
  ASSERT_EQ(read(data)[0], '{');
  for (size_t size = 0; size < data.size(); ++size) {
    EXPECT_NE(read(data.substr(0, size)).find("cut off"), std::string::npos) << size;
  }
}

}  // namespace pickle_test
}  // namespace cufit::formats
