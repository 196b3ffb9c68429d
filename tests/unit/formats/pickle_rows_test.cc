// SPDX-License-Identifier: Apache-2.0
// Dicts with the keys of the one before are read by their values alone (pickle_rows.cc). Whatever
// the bytes are, what comes out is what the opcodes say one by one: both are compared on rows of
// many forms, cut off, changed, and in small pieces.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "pickle_printer.h"

namespace cufit::formats {
namespace {

using namespace std::string_literals;

// Takes dicts that begin with the key "action" as rows, and a list of texts for good.
class RowPrinter final : public Printer {
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

 private:
  std::vector<PickleValue> keys_;
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

void expect_same(const std::string& bytes, size_t piece = 1 << 20,
                 const PickleLimits& limits = {}) {
  EXPECT_EQ(read_with<RowPrinter>(bytes, piece, limits), read_with<Printer>(bytes, piece, limits));
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

}  // namespace
}  // namespace cufit::formats
