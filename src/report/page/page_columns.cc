// SPDX-License-Identifier: Apache-2.0
#include "report/page/page_columns.h"

#include "base/base64.h"
#include "base/format.h"
#include "formats/archive/deflate.h"

namespace cufit::report {
namespace {

// Fast, and on byte planes nearly as small as the best level.
constexpr int k_level = 3;

template <class T>
void append_planes(std::string& out, std::span<const T> values, ColumnChunk::Values form) {
  const size_t begin = out.size();
  const size_t count = values.size();
  out.resize(begin + count * sizeof(T));
  T before = 0;
  for (size_t i = 0; i < count; ++i) {
    T value = values[i];
    if (form == ColumnChunk::Values::differences) {
      value = static_cast<T>(values[i] - before);
      before = values[i];
    }
    for (size_t plane = 0; plane < sizeof(T); ++plane)
      out[begin + plane * count + i] = static_cast<char>(value >> (8 * plane) & 0xff);
  }
}

}  // namespace

void ColumnChunk::describe(std::string_view name, std::string_view type, size_t count,
                           Values form) {
  directory_.push_back({{"name", name},
                        {"type", type},
                        {"count", count},
                        {"differences", form == Values::differences}});
}

void ColumnChunk::add(std::string_view name, std::span<const uint8_t> values) {
  describe(name, "u8", values.size(), Values::as_they_are);
  bytes_.append(reinterpret_cast<const char*>(values.data()), values.size());
}

void ColumnChunk::add(std::string_view name, std::span<const uint32_t> values, Values form) {
  describe(name, "u32", values.size(), form);
  append_planes(bytes_, values, form);
}

void ColumnChunk::add(std::string_view name, std::span<const uint64_t> values, Values form) {
  describe(name, "u64", values.size(), form);
  append_planes(bytes_, values, form);
}

void ColumnChunk::add_text(std::string_view name, std::string_view utf8) {
  describe(name, "text", utf8.size(), Values::as_they_are);
  bytes_ += utf8;
}

std::string ColumnChunk::packed() const { return base64(formats::deflate(bytes_, k_level)); }

}  // namespace cufit::report
