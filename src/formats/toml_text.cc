// SPDX-License-Identifier: Apache-2.0
#include "formats/toml_text.h"

#include <algorithm>

// toml++ asserts what a damaged document can break ("[=": found by fuzz/pylock.cc with 3.3), and
// takes the same for granted with NDEBUG: here a broken assumption ends the reading instead of the
// program.
namespace {
struct BrokenAssumption {};
constexpr void expect_of_toml(bool holds) {
  if (!holds) throw BrokenAssumption();
}
}  // namespace
#undef NDEBUG
#define TOML_ASSERT(expr) expect_of_toml(static_cast<bool>(expr))
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "base/format.h"

namespace cufit::formats {
namespace {

constexpr size_t k_most_bytes = size_t{64} << 20;
constexpr int k_deepest = 64;

TomlValue value_of(const toml::node& node, int depth) {
  TomlValue value;
  value.line = node.source().begin.line;
  if (depth > k_deepest) return value;
  if (const toml::table* table = node.as_table()) {
    value.kind = TomlValue::Kind::table;
    for (const auto& [key, child] : *table)
      value.members.push_back({std::string(key.str()), value_of(child, depth + 1)});
  } else if (const toml::array* array = node.as_array()) {
    value.kind = TomlValue::Kind::array;
    value.items.reserve(array->size());
    for (const toml::node& child : *array) value.items.push_back(value_of(child, depth + 1));
  } else if (const auto* text = node.as_string()) {
    value.kind = TomlValue::Kind::text;
    value.text = text->get();
  } else if (const auto* integer = node.as_integer()) {
    value.kind = TomlValue::Kind::integer;
    value.integer = integer->get();
  } else if (const auto* real = node.as_floating_point()) {
    value.kind = TomlValue::Kind::real;
    value.real = real->get();
  } else if (const auto* boolean = node.as_boolean()) {
    value.kind = TomlValue::Kind::boolean;
    value.integer = boolean->get() ? 1 : 0;
  }
  return value;
}

}  // namespace

bool TomlValue::is_texts() const {
  return kind == Kind::array && std::all_of(items.begin(), items.end(),
                                            [](const TomlValue& item) { return item.is_text(); });
}

const TomlValue* TomlValue::find(std::string_view key) const {
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

Error TomlDocument::wrong(const TomlValue& at, const std::string& what) const {
  return fail(Code::malformed, format("{}, line {}: {}", file, at.line, what));
}

Result<TomlDocument> parse_toml(std::string_view text, const std::string& file) {
  if (text.size() > k_most_bytes)
    return fail(Code::malformed, format("{}: larger than 64 MiB", file));
  try {
    const toml::parse_result parsed = toml::parse(text, file);
    if (parsed) return TomlDocument{file, value_of(parsed.table(), 0)};
    const toml::parse_error& error = parsed.error();
    return fail(Code::malformed,
                format("{}, line {}, column {}: {}", file, error.source().begin.line,
                       error.source().begin.column, std::string(error.description())));
  } catch (const BrokenAssumption&) {
    return fail(Code::malformed, format("{}: not TOML", file));
  }
}

std::string toml_quoted(std::string_view text) {
  static constexpr char k_hex[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      out += k_hex[byte >> 4];
      out += k_hex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace cufit::formats
