// SPDX-License-Identifier: Apache-2.0
// A text as the pieces of words that the encoder knows (WordPiece: the longest known piece first).
//
// A word is a run of letters and digits, ASCII in lower case; a sign of ASCII punctuation, one from
// U+2000 to U+206F and each character from U+3000 on (Chinese) is a word of its own. Addresses
// (https://...) are left out. A word that is longer than 40 bytes or not made of known pieces is
// the piece "[UNK]". tools/learn_encoder.py splits in the same way.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace cufit::explain {

// Pieces sorted by their bytes; one that does not begin its word stands with "##" before it.
struct PieceTable {
  std::span<const uint32_t> begins;  // of each piece in `bytes`, and the end of the last
  std::string_view bytes;
  uint32_t unknown = 0;
  size_t size() const { return begins.empty() ? 0 : begins.size() - 1; }
  std::string_view operator[](size_t i) const {
    return bytes.substr(begins[i], begins[i + 1] - begins[i]);
  }
};

// At most `most` indices.
std::vector<uint32_t> word_pieces(std::string_view text, const PieceTable& table, size_t most);

}  // namespace cufit::explain
