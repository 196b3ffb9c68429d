// SPDX-License-Identifier: Apache-2.0
// Rows of a table of TOML as structs. Which table makes which struct stands in tools/gen_tables.cc;
// gen-tables makes read_release_tables() of it, beside the built-in rows.
#pragma once

#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/toml_text.h"
#include "knowledge/knowledge.h"

namespace cufit::knowledge {

class TableReader {
 public:
  TableReader(const formats::TomlDocument& document,
              std::vector<std::shared_ptr<const void>>& storage)
      : document_(document),
        storage_(storage),
        texts_(std::make_shared<std::deque<std::string>>()) {
    storage_.push_back(texts_);
  }

  class Row;
  // The rows of table `name`; they live in the storage. After an error: none.
  template <class T, class Make>
  std::span<const T> rows(const char* name, Make make) {
    auto out = std::make_shared<std::vector<T>>();
    for (const formats::TomlValue* value : rows_of(name)) {
      Row row(*this, *value, name);
      out->push_back(make(row));
      row.finish();
    }
    storage_.push_back(out);
    return *out;
  }
  // Every table that the file has must be one that was asked for.
  void finish(std::initializer_list<std::string_view> others);
  const std::optional<Error>& error() const { return error_; }

  // A number that becomes whatever field it is for, if it fits.
  struct Number {
    TableReader& reader;
    const formats::TomlValue& row;
    const char* key;
    int64_t value;
    template <class T>
    operator T() const {
      if (value < int64_t{std::numeric_limits<T>::min()} ||
          (sizeof(T) < sizeof(int64_t) && value > int64_t{std::numeric_limits<T>::max()})) {
        reader.wrong(row, std::string("`") + key + "` is out of range");
        return 0;
      }
      return static_cast<T>(value);
    }
  };

  class Row {
   public:
    Row(TableReader& reader, const formats::TomlValue& value, const char* table)
        : reader_(reader), value_(value), table_(table) {}
    std::string_view text(const char* key, bool required);
    std::string_view list(const char* key, bool required);  // texts, joined with blanks
    std::string_view lower(const char* key, bool required);
    Number integer(const char* key, bool required);
    double real(const char* key, bool required);
    void finish();  // no other keys

   private:
    const formats::TomlValue* find(const char* key, bool required);
    void wrong_type(const char* key);
    TableReader& reader_;
    const formats::TomlValue& value_;
    const char* table_;
    std::set<std::string_view> known_ = {"source", "date", "note", "confidence"};
  };

 private:
  std::vector<const formats::TomlValue*> rows_of(const char* name);
  std::string_view keep(std::string text);
  void wrong(const formats::TomlValue& at, const std::string& what) {
    if (!error_) error_ = document_.wrong(at, what);
  }
  const formats::TomlDocument& document_;
  std::vector<std::shared_ptr<const void>>& storage_;
  std::shared_ptr<std::deque<std::string>> texts_;
  std::set<std::string_view> asked_;
  std::optional<Error> error_;
};

// Made by gen-tables: the tables that change with releases, each of which the file must have.
void read_release_tables(TableReader& in, Knowledge& out);

}  // namespace cufit::knowledge
