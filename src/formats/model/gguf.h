// SPDX-License-Identifier: Apache-2.0
// The header of a GGUF file (llama.cpp): its metadata and what its tensors are; their bytes are
// never read. Layout, little-endian, versions 2 and 3: "GGUF", version as 4 bytes; the number of
// tensors and of entries, 8 bytes each; the entries: key, type as 4 bytes, value; the tensors: name,
// number of dimensions as 4 bytes, that many 8-byte dimensions (the fastest first), type as 4 bytes,
// offset as 8 bytes from where the data begins, which is aligned. A text is its length in 8 bytes
// and that many bytes; a list is the type of its elements, their number in 8 bytes, the elements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "formats/model/ggml_type.h"
#include "formats/model/safetensors.h"

namespace cufit::formats {

struct GgufValue {
  enum class Kind : uint8_t { number, real, truth, text, numbers, other_list } kind = Kind::number;
  uint64_t number = 0;  // whole numbers and truths; of a negative one 0
  double real = 0;
  std::string text;
  std::vector<uint64_t> numbers;  // of a list of whole numbers or truths: at most 4096 of
                                  // one, and 1 << 20 of all lists together
  uint64_t count = 0;             // of a list
};

struct Gguf {
  uint32_t version = 0;
  std::vector<std::pair<std::string, GgufValue>> metadata;
  std::vector<Tensor> tensors;  // dtype: the type's name of ggml; shape as in the file
  uint64_t missing_bytes = 0;   // that the file ends too early

  const GgufValue* find(std::string_view key) const;  // null: none
  uint64_t number(std::string_view key, uint64_t otherwise = 0) const;
  std::string text(std::string_view key) const;
};

bool is_gguf(std::string_view first_bytes);

// Error{malformed} with the byte of the file for what does not follow the layout,
// Error{unsupported} for a version, or a tensor's type, that this reader does not know.
Result<Gguf> read_gguf(const ByteSource& source);

}  // namespace cufit::formats
