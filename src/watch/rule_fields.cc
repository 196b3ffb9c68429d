// SPDX-License-Identifier: Apache-2.0
#include "watch/rule_fields.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/duration.h"
#include "base/format.h"
#include "formats/prose/printable.h"

namespace cufit::watch {
namespace {

using formats::TomlValue;

constexpr size_t k_longest_text = 500;

}  // namespace

Error RuleFields::wrong(const TomlValue& at, const std::string& what) const {
  return document_.wrong(at, what);
}

Result<std::string> RuleFields::text(const TomlValue& table, std::string_view key,
                                     bool needed) const {
  const TomlValue* value = table.find(key);
  if (value == nullptr && needed) return wrong(table, format("`{}` is missing", key));
  if (value == nullptr) return std::string();
  if (!value->is_text() || value->text.empty()) return wrong(*value, format("`{}` is a text", key));
  if (value->text.size() > k_longest_text)
    return wrong(*value, format("`{}` is longer than {} bytes", key, k_longest_text));
  if (formats::printable(value->text, k_longest_text) != value->text)
    return wrong(*value, format("`{}` is one line without control characters", key));
  return value->text;
}

Result<std::string> RuleFields::word(const TomlValue& table, std::string_view key,
                                     std::initializer_list<std::string_view> words,
                                     bool needed) const {
  CUFIT_TRY(out, text(table, key, needed));
  if (out.empty() || std::find(words.begin(), words.end(), out) != words.end()) return out;
  return wrong(*table.find(key), format("`{}`: `{}` is none of {}", key, out,
                                        join({words.begin(), words.end()}, ", ")));
}

Result<void> RuleFields::only(const TomlValue& table,
                              std::initializer_list<std::string_view> keys) const {
  for (const formats::TomlMember& member : table.members)
    if (std::find(keys.begin(), keys.end(), member.name) == keys.end())
      return wrong(member.value, format("`{}`: no such key; there are {}", member.name,
                                        join({keys.begin(), keys.end()}, ", ")));
  return {};
}

Result<double> RuleFields::seconds(const TomlValue& table, std::string_view key) const {
  CUFIT_TRY(said, text(table, key, true));
  const std::optional<uint64_t> out = parse_duration(said);
  if (!out)
    return wrong(*table.find(key), format("`{}`: `{}` is no time such as 90s, 5m, 1h", key, said));
  return static_cast<double>(*out);
}

Result<double> RuleFields::number(const TomlValue& table, std::string_view key) const {
  const TomlValue* value = table.find(key);
  if (value == nullptr) return wrong(table, format("`{}` is missing", key));
  double out = 0;
  if (value->kind == TomlValue::Kind::integer)
    out = static_cast<double>(value->integer);
  else if (value->kind == TomlValue::Kind::real)
    out = value->real;
  else
    return wrong(*value, format("`{}` is a number", key));
  if (!std::isfinite(out)) return wrong(*value, format("`{}` is a number", key));
  return out;
}

}  // namespace cufit::watch
