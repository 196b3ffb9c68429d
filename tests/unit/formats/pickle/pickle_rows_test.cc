// SPDX-License-Identifier: Apache-2.0
// Dicts with the keys of the one before are read by their values alone (pickle_rows.cc), and many
// at a time where they were found ahead (pickle_runs.cc). Whatever the bytes are, what comes out is
// what the opcodes say one by one: all are compared on rows of many forms, cut off, changed, in
// small pieces and in small blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "formats/pickle/pickle_blocks.h"
#include "pickle_printer.h"

namespace cufit::formats {
namespace pickle_rows_test {

using namespace std::string_literals;

// Takes dicts that begin with the key "action" as rows, and a list of texts for good.
class RowPrinter : public Printer {
 public:
  explicit RowPrinter(const TextPool& texts) : Printer(texts) {}
  bool is_row(const PickleValue& key) override { return show(key) == "'action'"; }
  bool row_keys(std::span<const PickleValue> keys) override {
    keys_.assign(keys.begin(), keys.end());
    return true;
  }
  Result<PickleValue> set_row(std::span<const PickleValue> values) override {
    ++rows;
    EXPECT_EQ(values.size(), keys_.size());
    std::vector<PickleValue> pairs;
    for (size_t i = 0; i < values.size(); ++i)
      pairs.push_back(keys_[i]), pairs.push_back(values[i]);
    return set_items({Kind::empty_dict, 0, 0, 0}, pairs);
  }
  bool is_for_good(std::span<const PickleValue> items, const PickleValue& made) override {
    ++lists;
    return made.kind == Kind::object &&
           std::all_of(items.begin(), items.end(),
                       [](const PickleValue& item) { return item.kind == Kind::text; });
  }
  // Two lists may be one value here: what goes to the end of one makes another.
  Result<PickleValue> append(PickleValue to, std::span<const PickleValue> items) override {
    if (to.kind != Kind::object) return Printer::append(to, items);
    return Printer::append(copy_of(to), items);
  }
  size_t rows = 0, lists = 0;

 protected:
  std::vector<PickleValue> keys_;
};

// Takes them many at a time as well.
class RunPrinter final : public RowPrinter {
 public:
  explicit RunPrinter(const TextPool& texts) : RowPrinter(texts) {}
  bool row_places(std::span<PickleRowPlace> places) override {
    std::fill(places.begin(), places.end(), PickleRowPlace::shared);
    for (size_t i = 0; i < keys_.size(); ++i) {
      const std::string key = show(keys_[i]);
      if (key == "'addr'") places[i] = PickleRowPlace::first;
      if (key == "'size'") places[i] = PickleRowPlace::third;
      if (key == "'frames'") places[i] = PickleRowPlace::list;
    }
    run_keys_ = keys_;
    places_.assign(places.begin(), places.end());
    return true;
  }
  Result<uint32_t> share_row(std::span<const PickleValue> values) override {
    shared_.emplace_back(values.begin(), values.end());
    return static_cast<uint32_t>(shared_.size() - 1);
  }
  bool is_row_list(const PickleValue& value) override { return value.kind == Kind::object; }
  std::optional<PickleValue> set_rows(std::span<const PickleRow> many) override {
    if (refuses) return std::nullopt;
    std::optional<PickleValue> first;
    for (const PickleRow& row : many) {
      std::vector<PickleValue> pairs;
      for (size_t i = 0; i < places_.size(); ++i) {
        const auto number = [&](size_t place) {
          return PickleValue{Kind::integer, 0, 0, row.numbers[place]};
        };
        pairs.push_back(run_keys_[i]);
        pairs.push_back(shared_.at(row.shared).at(i));
        if (places_[i] == PickleRowPlace::first) pairs.back() = number(0);
        if (places_[i] == PickleRowPlace::third) pairs.back() = number(2);
        if (places_[i] != PickleRowPlace::list) continue;
        pairs.back() = PickleValue::object(0, row.list);
        if (row.list == PickleRow::k_empty_list) pairs.back() = {Kind::empty_list, 0, 0, 0};
        if (row.list == PickleRow::k_no_list) pairs.back() = PickleValue();
      }
      const Result<PickleValue> made = set_items({Kind::empty_dict, 0, 0, 0}, pairs);
      if (!first) first = *made;
      ++rows;
      ++in_runs;
    }
    return first;
  }
  size_t in_runs = 0;
  bool refuses = false;

 private:
  std::vector<PickleValue> run_keys_;
  std::vector<PickleRowPlace> places_;
  std::vector<std::vector<PickleValue>> shared_;
};

template <typename Sink>
std::string read_with(const std::string& bytes, size_t piece, const PickleLimits& limits,
                      size_t* rows = nullptr, size_t* lists = nullptr) {
  Pieces input(bytes, piece);
  TextPool texts;
  Sink sink(texts);
  Result<PickleResult> result = read_pickle(input, texts, sink, limits);
  if constexpr (std::is_same_v<Sink, RowPrinter>)
    if (rows != nullptr) *rows = sink.rows;
  if constexpr (std::is_same_v<Sink, RowPrinter>)
    if (lists != nullptr) *lists = sink.lists;
  return result ? sink.show(result->value) : result.error().what;
}

struct Ahead {
  size_t block = 300;
  unsigned threads = 0;
  bool refuses = false;
};
std::string read_ahead(const std::string& bytes, size_t piece, const PickleLimits& limits,
                       const Ahead& ahead, size_t* in_runs = nullptr) {
  Pieces input(bytes, piece);
  TextPool texts;
  RunPrinter sink(texts);
  sink.refuses = ahead.refuses;
  PickleBlocks blocks(input, ahead.threads, ahead.block);
  Result<PickleResult> result = read_pickle(blocks, texts, sink, limits);
  if (in_runs != nullptr) *in_runs = sink.in_runs;
  return result ? sink.show(result->value) : result.error().what;
}

void expect_same(const std::string& bytes, size_t piece = 1 << 20,
                 const PickleLimits& limits = {}) {
  const std::string plain = read_with<Printer>(bytes, piece, limits);
  EXPECT_EQ(read_with<RowPrinter>(bytes, piece, limits), plain);
  EXPECT_EQ(read_ahead(bytes, piece, limits, {}), plain);
}

std::string text(const std::string& value) {
  return "\x8c" + std::string(1, static_cast<char>(value.size())) + value + "\x94";
}
std::string get(unsigned index) {
  if (index < 256) return "h" + std::string(1, static_cast<char>(index));
  std::string wide = "j";
  for (int i = 0; i < 4; ++i) wide += static_cast<char>(index >> (8 * i));
  return wide;
}

// A list of dicts whose keys are memo entries; `pad` entries come before them.
std::string file(uint32_t seed, size_t rows, unsigned pad) {
  std::mt19937 random(seed);
  std::string out = "\x80\x04(";
  for (unsigned i = 0; i < pad; ++i) out += text("p" + std::to_string(i));
  const char* k_keys[] = {"action", "addr", "size", "frames", "stream", "other"};
  for (const char* key : k_keys) out += text(key);
  out += "]\x94(";
  for (size_t row = 0; row < rows; ++row) {
    const unsigned odd = random() % 24;
    out += "}\x94(";
    for (unsigned key = 0; key < 5; ++key) {
      if (odd == 1 && key == 2) continue;  // another set of keys
      if (odd == 2 && key == 4) out += get(pad + 5) + "K\x07";
      out += odd == 3 && key == 1 ? text("addr") : get(pad + key);
      switch (odd == 4 && key == 1 ? random() % 6 : key == 3 ? 6 + random() % 5 : random() % 5) {
        case 0:
          out += "K" + std::string(1, static_cast<char>(random()));
          break;
        case 1:
          out += "M\x01\xff";
          break;
        case 2:
          out += "J\xff\xff\xff\xff";
          break;
        case 3:
          out += "\x8a\x06" + "\x01\x02\x03\x04\x05\x7f"s;
          break;
        case 4:
          out += "N";
          break;
        case 5:
          out += "G" + std::string(8, '\x40');  // no usual value: leaves the row
          break;
        case 6:
          out += "]\x94";
          break;
        case 7:
          out += text("N/A");
          break;
        case 8:
          out += get(random() % (pad + 6));
          break;
        case 9: {
          out += "]\x94(";
          const size_t items = random() % 50 == 0 ? 1500 : 1 + random() % 4;
          for (size_t i = 0; i < items; ++i) out += get(random() % (pad + 6));
          out += "e";
          break;
        }
        default:
          out += "]\x94(" + get(pad) + "K\x01" + "e";  // not only entries of the memo
      }
    }
    out += "u";
    if (odd == 5) out += text("between");
  }
  return out + "et.";
}

TEST(PickleRows, AreTakenByTheirValues) {
  size_t rows = 0;
  const std::string bytes = file(1, 400, 300);
  const std::string shown = read_with<RowPrinter>(bytes, 1 << 20, {}, &rows);
  EXPECT_EQ(shown, read_with<Printer>(bytes, 1 << 20, {}));
  EXPECT_NE(shown.find("'action': "), std::string::npos);
  EXPECT_GT(rows, 200u);
}

// Rows as a trace has them, odd ones among them.
std::string usual_file(uint32_t seed, size_t rows) {
  std::mt19937 random(seed);
  std::string out = "\x80\x04(";
  const char* k_words[] = {"action", "addr", "size", "frames", "stream", "alloc", "free", "f", "g"};
  for (const char* word : k_words) out += text(word);
  out += "]\x94(";
  unsigned memo = 10;  // entries there are
  unsigned last_list = 7;
  for (size_t row = 0; row < rows; ++row) {
    const bool frees = random() % 2 != 0;
    out += "}\x94(" + get(0) + get(frees ? 6 : 5);
    ++memo;
    if (random() % 60 == 0) out += "\x95" + std::string(8, '\x07');
    out +=
        get(1) + "\x8a\x06" + std::string(1, static_cast<char>(random())) + "\x02\x03\x04\x05\x7f";
    if (random() % 90 == 0) out += "\x95" + std::string(8, '}');
    out += get(2) + "M" + std::string(2, static_cast<char>(random())) + get(4);
    if (random() % 3 == 0) {
      out += "K\x07";
    } else {
      const bool is_long = random() % 4 == 0;
      out += text(is_long ? "a text that is longer" : "N/A");
      ++memo;
    }
    out += get(3);
    const unsigned kind = random() % 8;
    if (kind == 0) {
      out += get(last_list);
    } else if (kind == 1) {
      out += "]\x94";
      last_list = memo++;
    } else if (kind == 2) {
      out += "N";
    } else {
      out += "]\x94(";
      for (unsigned i = 0; i < kind; ++i) out += get(random() % 40 == 0 ? 0 : 7 + random() % 2);
      out += "e";
      last_list = memo++;
    }
    out += "u";
    if (row % 100 == 99) out += "e(";
    if (random() % 200 == 0) {
      out += text("between");
      ++memo;
    }
  }
  return out + "et.";
}

TEST(PickleRows, FoundAheadTheyAreTheSame) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const std::string bytes = usual_file(seed, 700);
    const std::string plain = read_with<Printer>(bytes, 1 << 20, {});
    ASSERT_NE(plain.find("'frames': ["), std::string::npos) << plain.substr(0, 200);
    for (const size_t block : {64u, 300u, 5000u}) {
      size_t in_runs = 0;
      const unsigned threads = seed % 4;
      ASSERT_EQ(read_ahead(bytes, 1 << 20, {}, {block, threads}, &in_runs), plain) << seed;
      EXPECT_GE(in_runs, block == 64 ? 0u : block == 300 ? 250u : 450u) << seed << " " << block;
      ASSERT_EQ(read_ahead(bytes, 1 << 20, {}, {block, threads, true}), plain) << seed;
    }
  }
}

TEST(PickleRows, FoundAheadAndChangedTheyReadAlike) {
  std::mt19937 random(11);
  const std::string opcodes = "hjKMJN]}(eu.0129aqrst\x94\x8a\x8c\x85\x86\x87\x95";
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = usual_file(static_cast<uint32_t>(round % 7), 60);
    for (unsigned change = 0; change <= random() % 4; ++change) {
      const char byte =
          random() % 2 ? opcodes[random() % opcodes.size()] : static_cast<char>(random());
      bytes[2 + random() % (bytes.size() - 2)] = byte;
    }
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    const std::string plain = read_with<Printer>(bytes, 1 << 20, {});
    ASSERT_EQ(read_ahead(bytes, 1 << 20, {}, {100 + random() % 900, 0}), plain) << round;
  }
}

// What a GET means may change between two runs of rows, though not within one.
TEST(PickleRows, FoundAheadTheySeeAnEntryThatIsFilledLater) {
  std::string bytes = "\x80\x04(" + text("action") + text("addr") + text("stream") + "]\x94]\x94(";
  const std::string row =
      "}\x94(" + get(0) + "K\x01" + get(1) + "M\x02\x03" + get(2) + get(3) + "u";
  for (int i = 0; i < 60; ++i) {
    bytes += row;
    if (i % 20 == 19) bytes += get(3) + "(K\x05" + "e0";  // one more item in the shared list
  }
  bytes += "et.";
  const std::string plain = read_with<Printer>(bytes, 1 << 20, {});
  ASSERT_NE(plain.find("'stream': [5, 5]}"), std::string::npos) << plain;
  for (const size_t block : {150u, 400u, 800u, 4000u}) {
    size_t in_runs = 0;
    EXPECT_EQ(read_ahead(bytes, 1 << 20, {}, {block, 0}, &in_runs), plain) << block;
    EXPECT_GE(in_runs, block == 4000 ? 0u : 10u) << block;
  }
}

TEST(PickleRows, FoundAheadLimitsHoldAtTheSameByte) {
  const std::string bytes = usual_file(2, 200);
  for (uint64_t limit = 8; limit < 700; limit += 13) {
    for (int which = 0; which < 3; ++which) {
      PickleLimits limits;
      if (which == 0) limits.memo_entries = limit;
      if (which == 1) limits.texts = limit / 20;
      if (which == 2) limits.marks = limit % 5;
      expect_same(bytes, 1 << 20, limits);
    }
  }
}

TEST(PickleRows, AListIsMadeOnceForTheSameItems) {
  std::string bytes =
      "\x80\x04(" + text("action") + text("frames") + text("a") + text("b") + "]\x94(";
  const auto row = [](const std::string& items) {
    return "}\x94(" + get(0) + "K\x01" + get(1) + "]\x94(" + items + "e" + "u";
  };
  for (int i = 0; i < 50; ++i) bytes += row(get(2) + get(3)) + row(get(3) + get(2)) + row(get(2));
  bytes += "et.";
  size_t rows = 0, lists = 0;
  const std::string shown = read_with<RowPrinter>(bytes, 1 << 20, {}, &rows, &lists);
  EXPECT_EQ(shown, read_with<Printer>(bytes, 1 << 20, {}));
  EXPECT_GT(rows, 140u);
  EXPECT_EQ(lists, 3u);
}

TEST(PickleRows, InPiecesTheyAreTheSame) {
  for (uint32_t seed = 0; seed < 6; ++seed)
    for (const size_t piece : {1, 7, 100, 4096}) expect_same(file(seed, 60, seed * 90), piece);
}

TEST(PickleRows, CutOffTheyEndAlike) {
  const std::string bytes = file(3, 12, 2);
  for (size_t size = 0; size < bytes.size(); ++size) expect_same(bytes.substr(0, size));
}

TEST(PickleRows, ChangedTheyReadAlike) {
  std::mt19937 random(7);
  const std::string opcodes = "hjKMJN]}(eu.0129aqrst\x94\x8a\x8c\x85\x86\x87";
  for (int round = 0; round < 6000; ++round) {
    std::string bytes = file(static_cast<uint32_t>(round % 5), 14, 3);
    for (unsigned change = 0; change <= random() % 3; ++change) {
      const char byte =
          random() % 2 ? opcodes[random() % opcodes.size()] : static_cast<char>(random());
      bytes[2 + random() % (bytes.size() - 2)] = byte;
    }
    expect_same(bytes);
    if (HasFailure()) break;
  }
}

TEST(PickleRows, LimitsHoldAtTheSameByte) {
  const std::string bytes = file(2, 200, 4);
  for (uint64_t limit = 8; limit < 700; limit += 13) {
    PickleLimits limits;
    limits.memo_entries = limit;
    expect_same(bytes, 1 << 20, limits);
    limits = {};
    limits.texts = limit / 8;
    expect_same(bytes, 1 << 20, limits);
    limits = {};
    limits.marks = limit % 5;
    expect_same(bytes, 1 << 20, limits);
    limits = {};
    limits.stack_values = limit;
    expect_same(bytes, 1 << 20, limits);
  }
}

TEST(PickleRows, AMemoEntryWrittenAgainChangesTheKey) {
  const std::string head = "\x80\x04(" + text("action") + text("addr") + "]\x94(";
  const std::string row = "}\x94(" + get(0) + "K\x01" + get(1) + "K\x02" + "u";
  const std::string bytes = head + row + row + "\x8c\x03new" + "q\x01" + row + row + "et.";
  expect_same(bytes);
  EXPECT_NE(read_with<RowPrinter>(bytes, 1 << 20, {}).find("'new': 2"), std::string::npos);
}

}  // namespace pickle_rows_test
}  // namespace cufit::formats
