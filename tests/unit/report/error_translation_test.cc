// SPDX-License-Identifier: Apache-2.0
// What the folders below word in English has Chinese: rows of the tables of codes, the messages
// "said.*", and every sentence of an error in the sources.
#include "report/error_translation.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "base/format.h"
#include "report/report.h"
#include "support/places.h"

namespace cufit::report {
namespace error_translation_test {

const knowledge::Knowledge& tables() { return knowledge::Knowledge::builtin(); }
std::string zh(std::string_view text) { return translated_error(text, "zh", tables()); }

bool has_chinese(std::string_view text) {
  for (size_t at = 0; at + 2 < text.size(); ++at) {  // U+4E00 to U+9FFF
    const auto first = static_cast<unsigned char>(text[at]);
    if (first >= 0xE4 && first <= 0xE9) return true;
  }
  return false;
}

template <class Row>
void expect_chinese(std::span<const Row> rows) {
  EXPECT_FALSE(rows.empty());
  for (const Row& row : rows) {
    EXPECT_TRUE(has_chinese(row.zh)) << row.meaning;
    EXPECT_EQ(tables().meaning_zh(row.meaning), row.zh) << "two Chinese texts of one meaning";
  }
}

TEST(Said, EveryCodeHasChinese) {
  expect_chinese(tables().xids);
  expect_chinese(tables().cuda_codes);
  expect_chinese(tables().nvml_codes);
  expect_chinese(tables().library_codes);
  expect_chinese(tables().exit_codes);
}

TEST(Said, IsFoundAgainByItsPattern) {
  EXPECT_EQ(zh("`--batch x`: a number from 1 to 9, or `auto`"),
            "`--batch x`：应为 1 到 9 之间的数，或 `auto`");
  EXPECT_EQ(zh("`--steps x`: a number from 1 to 9"), "`--steps x`：应为 1 到 9 之间的数");
  EXPECT_EQ(zh("`a/b`: No such file or directory"), "`a/b`：没有那个文件或目录");
  EXPECT_EQ(zh("class cu126: `a`: No such file or directory"), "类 cu126：`a`：没有那个文件或目录");
  EXPECT_EQ(zh("--lang: fr not in {en,zh}"), "--lang：fr 不在可选值 {en,zh} 之中");
  EXPECT_EQ(zh("a.toml, line 2, column 3: `b` is missing"), "a.toml，第 2 行，第 3 列：缺少 `b`");
  EXPECT_EQ(zh("`a:1`: allocator setting `a`: must be at least 20, but `1` stands at byte 2"),
            "`a:1`：分配器设置 `a`：须不小于 20，但第 2 字节处为 `1`");
  EXPECT_EQ(zh("`--batch-arg \"a\"`: the option that sets the batch size in your program, with {} "
               "for the number: --batch-arg \"--batch-size {}\""),
            "`--batch-arg \"a\"`：应写出程序中设置批大小的选项，数字处写 {}：--batch-arg "
            "\"--batch-size {}\"");
  EXPECT_EQ(zh("`a` cannot be opened: Permission denied"), "`a` 无法打开：权限不够");
  EXPECT_EQ(zh("class a: words of another program"), "类 a：words of another program");
  EXPECT_EQ(zh("a.pkl: STRING without quotes at byte 2"), "a.pkl：第 2 字节处：STRING 没有引号");
  EXPECT_EQ(zh("`a` cannot be made: Permission denied"), "`a` 无法创建：权限不够");
  EXPECT_EQ(zh("79: the GPU fell off the PCIe bus: the driver cannot reach it any more"),
            "79：GPU 从 PCIe 总线掉线：驱动已无法访问它");
  EXPECT_EQ(zh("libcuda.so.1: no such library"), "libcuda.so.1：没有该库");
  EXPECT_EQ(translated_error("no such library", "en", tables()), "no such library");
}

TEST(Said, WhatOthersSayStaysAsItIs) {
  for (const char* text :
       {"", "470.57.02", "RuntimeError: CUDA error: out of memory",
        "File \"train.py\", line 12: syntax error", "NVRM: Xid (PCI:0000:01:00): 79, pid=1",
        "train.py: something at byte 12", "torch==2.7.1: a note of its own", "1: a note: another"})
    EXPECT_EQ(zh(text), text);
}

TEST(Said, WhatIsMadeToTakeLongDoesNot) {
  std::string text = "`";
  for (int i = 0; i < 2000; ++i) text += "a: ";
  EXPECT_EQ(zh(text), text);
  text.resize(4000);
  EXPECT_EQ(zh(text), text);
  text = std::string(10000, ':') + ": No such file or directory";
  EXPECT_EQ(zh(text), text);
}

// Every message is found by its own English, however its names are filled in.
TEST(Said, EveryMessageIsReached) {
  size_t count = 0;
  for (const knowledge::TextPair& pair : tables().messages) {
    if (!starts_with(pair.key, "said.") || starts_with(pair.key, "said.place.")) continue;
    ++count;
    std::map<std::string, std::string> english, chinese;
    for (size_t at = pair.en.find('{'); at != pair.en.npos; at = pair.en.find('{', at + 1)) {
      const size_t close = pair.en.find_first_of("{}", at + 1);
      const std::string name(pair.en.substr(at + 1, close - at - 1));
      const bool text = starts_with(name, "what") || starts_with(name, "why");
      english[name] = name == "meaning" ? "NVML was not initialised"
                      : text            ? "Permission denied"
                                        : "X9";
      chinese[name] = name == "meaning" ? "NVML 尚未初始化" : text ? zh("Permission denied") : "X9";
    }
    EXPECT_EQ(zh(format_message(pair.en, english)), format_message(pair.zh, chinese)) << pair.key;
  }
  EXPECT_GT(count, 600u);
}

// --- the sources -------------------------------------------------------------------------------

struct Sentence {
  std::string place, text;  // with {} for what is filled in
};

// The literals that stand side by side from `at` on, as one text; `at` is then behind them.
std::string literals_at(const std::string& source, size_t& at) {
  std::string out;
  while (at < source.size() && source[at] == '"') {
    for (++at; at < source.size() && source[at] != '"'; ++at) {
      if (source[at] == '\\') ++at;
      out += source[at - 1] == '\\' && source[at] == 'n' ? '\n' : source[at];
    }
    const size_t next = source.find_first_not_of(" \n", at + 1);
    if (next == source.npos || source[next] != '"') {
      at = next;
      return out;
    }
    at = next;
  }
  return out;
}

// First arguments of fail(code, "...") and fail(code, format("...")), and of .in().
std::vector<Sentence> sentences_of(const std::filesystem::path& path) {
  std::ostringstream read;
  read << std::ifstream(path).rdbuf();
  const std::string source = read.str();
  std::vector<Sentence> out;
  for (const std::string_view call : {" fail(", "\nfail(", "(fail(", ".in("}) {
    for (size_t found = source.find(call); found != source.npos;
         found = source.find(call, found + 1)) {
      size_t at = found + call.size();
      if (call != ".in(") {
        while (at < source.size() && source[at] != ',' && source[at] != ';') ++at;
        ++at;
      }
      at = source.find_first_not_of(" \n", at);
      if (at != source.npos && source.compare(at, 7, "format(") == 0)
        at = source.find_first_not_of(" \n", at + 7);
      if (at == source.npos || source[at] != '"') continue;
      std::string text = literals_at(source, at);
      if (at == source.npos || source[at] == '+') continue;  // put together of parts
      if (call == ".in(") text += ": {}";
      const auto line = std::count(source.begin(), source.begin() + static_cast<long>(found), '\n');
      out.push_back({format("{}:{}", path.filename().string(), line + 1), std::move(text)});
    }
  }
  return out;
}

// What stands between the {}; "{{}}" is no place.
std::vector<std::string> pieces_of(const std::string& text) {
  std::vector<std::string> out = {""};
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '{' && at + 1 < text.size() && text[at + 1] == '{') {
      out.back() += text[at++];
    } else if (text[at] == '}' && at + 1 < text.size() && text[at + 1] == '}') {
      out.back() += text[at++];
    } else if (text[at] == '{') {
      at = text.find('}', at);
      out.emplace_back();
    } else {
      out.back() += text[at];
    }
  }
  return out;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Two words with a blank between them.
bool has_words(std::string_view piece) {
  for (size_t at = 2; at + 2 < piece.size(); ++at)
    if (piece[at] == ' ' && is_letter(piece[at - 1]) && is_letter(piece[at - 2]) &&
        is_letter(piece[at + 1]) && is_letter(piece[at + 2]))
      return true;
  return false;
}

// Sentences that are whole only with what stands for {}: their rows are tried by name.
constexpr std::string_view k_with_words[] = {
    "{}: {} at byte {}", "`{}` cannot be {}: {}",
    "`--{} \"{}\"`: the option that sets the {} in your program, with {{}} for the number: --{} "
    "\"--{} {{}}\""};

// "a LoRA, not a model{}": a part of the sentence that may be missing.
bool is_missing_part(std::string_view before) {
  return !before.empty() && is_letter(before.back());
}

TEST(Said, EveryErrorOfTheSourcesHasChinese) {
  size_t count = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(cufit::test::source_dir() + "/src")) {
    const std::string name = entry.path().extension().string();
    if (name != ".cc" && name != ".h") continue;
    for (const Sentence& sentence : sentences_of(entry.path())) {
      const std::vector<std::string> pieces = pieces_of(sentence.text);
      std::string text = pieces[0];
      for (size_t i = 1; i < pieces.size(); ++i) {
        const bool last = i + 1 == pieces.size();
        if (!is_missing_part(pieces[i - 1])) text += last ? "Permission denied" : "X9";
        text += pieces[i];
      }
      if (std::find(std::begin(k_with_words), std::end(k_with_words), sentence.text) !=
          std::end(k_with_words))
        continue;
      const std::string chinese = zh(text);
      for (const std::string& piece : pieces) {
        if (!has_words(piece)) continue;
        ++count;
        EXPECT_FALSE(contains(chinese, piece))
            << sentence.place << ": no row of data/messages/errors.toml for \"" << sentence.text
            << "\"";
      }
    }
  }
  EXPECT_GT(count, 200u);
}

}  // namespace error_translation_test
}  // namespace cufit::report
