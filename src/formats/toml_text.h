// SPDX-License-Identifier: Apache-2.0
// TOML as plain values with their lines, so that toml++ is included in one file and every message
// names file and line. Tables keep the order of their keys by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cufit::formats {

struct TomlMember;

struct TomlValue {
  enum class Kind { table, array, text, integer, real, boolean, other } kind = Kind::other;
  uint32_t line = 0;
  std::string text;                 // of Kind::text; of Kind::other the day of a date
  int64_t integer = 0;              // of Kind::integer; 0 or 1 of Kind::boolean
  double real = 0;                  // of Kind::real
  std::vector<TomlValue> items;     // of Kind::array
  std::vector<TomlMember> members;  // of Kind::table

  bool is_table() const { return kind == Kind::table; }
  bool is_text() const { return kind == Kind::text; }
  bool is_texts() const;  // an array that holds nothing but texts
  const TomlValue* find(std::string_view key) const;
};

// No std::pair: clang 14 wants its parts to be complete before TomlValue is.
struct TomlMember {
  std::string name;
  TomlValue value;
};

struct TomlDocument {
  std::string file;
  TomlValue root;
  const TomlValue* find(std::string_view key) const { return root.find(key); }
  // Error{malformed}: "cufit.toml, line 3: what".
  Error wrong(const TomlValue& at, const std::string& what) const;
};

// At most 64 MiB and 64 levels; Error{malformed} names file, line and column.
Result<TomlDocument> parse_toml(std::string_view text, const std::string& file);

// A text as TOML writes it, with its quotes.
std::string toml_quoted(std::string_view text);

}  // namespace cufit::formats
