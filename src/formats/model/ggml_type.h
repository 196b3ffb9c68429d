// SPDX-License-Identifier: Apache-2.0
// The types in which ggml keeps numbers: how many bytes a block takes.
#pragma once

#include <cstdint>
#include <string_view>

namespace cufit::formats {

// Elements and bytes of one block of a type of ggml.
struct GgmlType {
  std::string_view name;  // "Q4_K"
  uint32_t number = 0;
  uint32_t block = 1, block_bytes = 0;
};
const GgmlType* ggml_type(uint32_t number);        // null: not known
const GgmlType* ggml_type(std::string_view name);  // "q8_0", any case
// Bytes of so many elements in whole blocks.
inline uint64_t ggml_bytes(const GgmlType& type, uint64_t elements) {
  return (elements + type.block - 1) / type.block * type.block_bytes;
}

}  // namespace cufit::formats
