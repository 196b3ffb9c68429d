// SPDX-License-Identifier: Apache-2.0
// Shared by the two halves of gen-tables: rows of tables (gen_tables.cc), findings with their texts
// and signatures (gen_findings.cc).
#pragma once

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gen {

// Prints `file:line: what` and makes the program exit with 1.
void report(const std::string& file, const toml::source_region& at, const std::string& what);

std::string quote(std::string_view text);  // a C++ string_view literal

struct Text {
  std::string en, zh;
};
using Texts = std::map<std::string, Text>;  // sorted: two builds of one tree are the same bytes

// Nested tables to dotted keys. `lang` set: leaves are strings of that language (findings); empty:
// leaves are tables {en, zh} (messages).
void flatten(const toml::table& table, const std::string& prefix, const std::string& lang,
             const std::string& file, Texts& out);
std::string text_pairs(const Texts& texts, const std::string& file, const toml::source_region& at);

std::optional<toml::table> parse(const std::filesystem::path& path);
std::vector<std::filesystem::path> toml_files(const std::filesystem::path& folder);

// data/findings and data/clues as C++ arrays; `members` gets the lines of Knowledge's initialiser.
std::string findings_cpp(const std::filesystem::path& data, std::string& members);

// gen_pattern.cc: what every match of a pattern holds, in lower case.
struct Requirements {
  std::string word;  // the longest of 3 or more bytes (with blanks where no word is long enough)
  // Further words, one per line; "a|b" stands for one of them at least.
  std::string also;
};
// No word: `why` says so, or names what RE2 does not accept.
Requirements required_words(std::string_view pattern, std::string& why);
// The pattern in lower case where it is nothing but text, with '\b' for a word's edge at either
// end; empty where it takes a regular expression.
std::string plain_text(std::string_view pattern);
// What RE2 compiles: a blank of the pattern stands for any white space, a line break included.
std::string with_any_space(std::string_view pattern);

}  // namespace gen
