// SPDX-License-Identifier: Apache-2.0
// Shared by the parts of gen-tables: which tables there are (gen_table_specs.cc), their rows (gen_tables.cc), findings with
// their texts and signatures (gen_findings.cc).
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

enum class Kind { text, list, integer, real, lower };  // list: array of strings, joined with blanks

struct Field {
  const char* key;
  Kind kind = Kind::text;
  bool required = true;
};

struct TableSpec {
  const char* name;           // in TOML
  const char* type;           // C++ row type
  const char* member;         // of Knowledge
  std::vector<Field> fields;  // in the order of the struct's members
  bool release = false;       // changes with releases: a table file may bring another
};

// gen_table_specs.cc: every table of data/, in the order of Knowledge's members.
const std::vector<TableSpec>& specs();

// Prints `file:line: what` and makes the program exit with 1.
void report(const std::string& file, const toml::source_region& at, const std::string& what);

std::string literal_of(std::string_view text);  // a C++ string literal
std::string quote(std::string_view text);       // a string_view literal

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

// Texts that rows name by offset (knowledge.h, Pooled), each once.
class Pool {
 public:
  std::string add(const std::string& text);  // "{begin, size}"
  std::string cpp() const;                   // the array k_pool

 private:
  std::string all_;
  std::map<std::string, size_t> places_;
};

// data/findings and data/clues as C++ arrays; `members` gets the lines of Knowledge's initialiser.
std::string findings_cpp(const std::filesystem::path& data, Pool& pool, std::string& members);

// data/vocabulary.toml (gen_vocabulary.cc); an absent file is an empty table.
std::string vocabulary_cpp(const std::filesystem::path& file, Pool& pool, std::string& members);

// gen_pattern.cc: how a pattern is searched for.
struct PatternParts {
  std::string re;    // what RE2 compiles: a blank stands for any white space, a line break included
  std::string word;  // of 3 or more bytes, lower case, in every match
  // The pattern in lower case where it is nothing but text, with '\b' for a word's edge at either
  // end; empty where it takes a regular expression.
  std::string plain;
  // Otherwise the literals of every match in their order, a line each: how many bytes are between
  // it and the one before at most, then a tab before each of its alternatives. White space of any
  // length counts as one blank, '\x01' is any digit, '\b' a word's edge. Empty where that is no
  // more than `word`.
  std::string shape;
};
// No word: `why` says so, or names what RE2 does not accept.
PatternParts parts_of(std::string_view pattern, std::string& why);
// Words of 3 or more bytes in lower case, parted by `|`, one of which is in every match of an RE2 pattern whatever the case:
// ASCII or Chinese, without blanks. Empty where there are none.
std::string words_of(std::string_view pattern);

}  // namespace gen
