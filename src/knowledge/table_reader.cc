// SPDX-License-Identifier: Apache-2.0
#include "knowledge/table_reader.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::knowledge {

using formats::TomlValue;

std::vector<const TomlValue*> TableReader::rows_of(const char* name) {
  asked_.insert(name);
  if (error_) return {};
  const TomlValue* table = document_.find(name);
  const TomlValue* rows = table != nullptr ? table->find("rows") : nullptr;
  if (rows == nullptr || rows->kind != TomlValue::Kind::array || rows->items.empty()) {
    wrong(table != nullptr ? *table : document_.root, format("table `{}` has no `rows`", name));
    return {};
  }
  std::vector<const TomlValue*> out;
  for (const TomlValue& row : rows->items) {
    if (!row.is_table()) wrong(row, "a row is an inline table");
    for (const char* key : {"source", "date"})
      if (row.find(key) == nullptr && table->find(key) == nullptr)
        wrong(row, format("row without `{}`", key));
    out.push_back(&row);
  }
  if (error_) out.clear();
  return out;
}

void TableReader::finish(std::initializer_list<std::string_view> others) {
  asked_.insert(others.begin(), others.end());
  for (const formats::TomlMember& member : document_.root.members)
    if (asked_.count(member.name) == 0)
      wrong(member.value, format("unknown table `{}`", member.name));
}

std::string_view TableReader::keep(std::string text) {
  texts_->push_back(std::move(text));
  return texts_->back();
}

const TomlValue* TableReader::Row::find(const char* key, bool required) {
  known_.insert(key);
  const TomlValue* found = value_.find(key);
  if (found == nullptr && required) reader_.wrong(value_, format("row lacks `{}`", key));
  return found;
}

void TableReader::Row::wrong_type(const char* key) {
  reader_.wrong(value_, format("`{}` has the wrong type", key));
}

std::string_view TableReader::Row::text(const char* key, bool required) {
  const TomlValue* found = find(key, required);
  if (found == nullptr) return {};
  const bool is_day = found->kind == TomlValue::Kind::other && !found->text.empty();
  if (!found->is_text() && !is_day) {
    wrong_type(key);
    return {};
  }
  return reader_.keep(found->text);
}

std::string_view TableReader::Row::lower(const char* key, bool required) {
  return reader_.keep(cufit::lower(text(key, required)));
}

std::string_view TableReader::Row::list(const char* key, bool required) {
  const TomlValue* found = find(key, required);
  if (found == nullptr) return {};
  if (!found->is_texts()) {
    wrong_type(key);
    return {};
  }
  std::string out;
  for (const TomlValue& item : found->items) out += (out.empty() ? "" : " ") + item.text;
  return reader_.keep(cufit::lower(out));
}

TableReader::Number TableReader::Row::integer(const char* key, bool required) {
  const TomlValue* found = find(key, required);
  if (found != nullptr && found->kind != TomlValue::Kind::integer) wrong_type(key);
  return {reader_, value_, key, found != nullptr ? found->integer : 0};
}

double TableReader::Row::real(const char* key, bool required) {
  const TomlValue* found = find(key, required);
  if (found == nullptr) return 0;
  if (found->kind == TomlValue::Kind::integer) return static_cast<double>(found->integer);
  if (found->kind != TomlValue::Kind::real) wrong_type(key);
  return found->real;
}

void TableReader::Row::finish() {
  for (const formats::TomlMember& member : value_.members)
    if (known_.count(member.name) == 0)
      reader_.wrong(member.value, format("unknown key `{}` in table `{}`", member.name, table_));
}

}  // namespace cufit::knowledge
