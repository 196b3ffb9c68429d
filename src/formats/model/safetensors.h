// SPDX-License-Identifier: Apache-2.0
// The header of a .safetensors file: names, types and shapes of the tensors; their bytes are never
// read. Layout: 8 bytes, the length of what follows, little-endian; that much JSON,
// {"NAME": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, ...,
//  "__metadata__": {"KEY": "TEXT"}}, perhaps followed by blanks; then the tensors. Offsets are from
// there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace cufit::formats {

struct Tensor {
  std::string name;
  std::string dtype;  // as written: "BF16", "F8_E4M3"
  std::vector<uint64_t> shape;
  uint64_t elements = 0;  // product of the shape
  uint64_t bytes = 0;     // in the file
};

struct Safetensors {
  std::vector<Tensor> tensors;  // in the order of the header
  std::vector<std::pair<std::string, std::string>> metadata;
  uint64_t missing_bytes = 0;  // that the file ends too early: a download that was cut off
};

// Bits of one element; nullopt for a type that this reader does not know.
std::optional<uint32_t> dtype_bits(std::string_view dtype);

// Error{malformed} with the byte of the file for what does not follow the layout,
// Error{unsupported} for a git-lfs pointer in the place of a file. A header may be 100 MB at most,
// as the format says.
Result<Safetensors> read_safetensors(const ByteSource& source);

// `model.safetensors.index.json` of a model in several files: their names, each once, sorted.
// Names that lead out of the folder are Error{malformed}.
Result<std::vector<std::string>> parse_safetensors_index(std::string_view text,
                                                         const std::string& name);

}  // namespace cufit::formats
