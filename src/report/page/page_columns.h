// SPDX-License-Identifier: Apache-2.0
// Columns of numbers as text in a page, read by src/report/page/web/columns.js. A chunk is a run of
// columns, compressed as one. A column is written as differences to the value before, if it says
// so, and then in byte planes: the lowest bytes of all values, then the next ones; numbers that
// differ little then compress to almost nothing.
//
//   u8   1 byte a value
//   u32  4 planes; differences wrap
//   u64  8 planes; differences wrap; values below 2^53
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"

namespace cufit::report {

class ColumnChunk {
 public:
  enum class Values { as_they_are, differences };

  void add(std::string_view name, std::span<const uint8_t> values);
  void add(std::string_view name, std::span<const uint32_t> values,
           Values form = Values::as_they_are);
  void add(std::string_view name, std::span<const uint64_t> values,
           Values form = Values::as_they_are);
  void add_text(std::string_view name, std::string_view utf8);

  // [{"name":..., "type":"u32", "count":..., "differences":true}, ...]
  const Json& directory() const { return directory_; }
  // Compressed, base64.
  std::string packed() const;

 private:
  void describe(std::string_view name, std::string_view type, size_t count, Values form);

  Json directory_ = Json::array();
  std::string bytes_;
};

}  // namespace cufit::report
