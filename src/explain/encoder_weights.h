// SPDX-License-Identifier: Apache-2.0
// The weights of the text encoder, data/encoder.bin, which tools/learn_encoder.py writes and the
// program carries. Little-endian; each part begins at a multiple of 64 bytes:
//
//   "CUFITENC", then 32-bit numbers: version 1, layers, hidden, heads, inner, positions, pieces,
//   causes, and the pieces that stand for an unknown word, the begin and the end of a text
//   pieces: begin of each and end of the last (32 bits), their bytes; ids of causes: the same
//   table of pieces, table of positions: matrices without a bias; norm
//   a layer: query, key and value in one matrix; attention's output; norm; inner; output; norm
//   causes: bias, weights (float, row by row)
//
// A norm is scale and shift (float). A matrix is its bias (float, one a row), then: a scale a row
// (float), a multiplier (8 bits) for each 32 columns of a row, and 16 bytes for these 32: the low
// bits of byte i are column i, the high ones column 16 + i. A weight is scale * multiplier * (the
// four bits - 8): what is in a row's sums is whole numbers until its scale.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "explain/word_pieces.h"

namespace cufit::explain {

struct Matrix {
  size_t rows = 0, columns = 0;
  std::span<const float> bias;  // empty: none
  std::span<const float> scale;
  std::span<const uint8_t> times, fours;
};

struct Norm {
  std::span<const float> scale, shift;
};

struct EncoderLayer {
  Matrix heads, joined, wide, narrow;
  Norm norm1, norm2;
};

struct EncoderWeights {
  uint32_t hidden = 0, heads = 0, inner = 0, positions = 0;
  uint32_t begin = 0, end = 0;  // pieces
  PieceTable pieces;
  std::vector<std::string_view> causes;
  Matrix words, places;
  Norm norm;
  std::vector<EncoderLayer> layers;
  std::span<const float> cause_bias, cause_weights;  // [causes], [causes][hidden]
};

// A view of `bytes`, which begin at a multiple of 4 and must outlive it.
Result<EncoderWeights> read_encoder_weights(std::string_view bytes);

// The program's own. Their bytes are read from its file when they are first used.
const EncoderWeights& builtin_encoder();

}  // namespace cufit::explain
