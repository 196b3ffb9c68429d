// SPDX-License-Identifier: Apache-2.0
#include "explain/word_pieces.h"

#include <algorithm>
#include <string>

namespace cufit::explain {
namespace {

constexpr size_t k_word_pieces_longest_word = 40;

enum class Kind { space, letter, sign };

struct Character {
  Kind kind = Kind::space;
  size_t bytes = 1;
};

Kind kind_of_ascii(unsigned char c) {
  if (c <= ' ' || c == 0x7F) return Kind::space;
  const bool letter = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter ? Kind::letter : Kind::sign;
}

// The character at the begin of a text that is not empty; a byte that is no UTF-8 is a space.
Character character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {kind_of_ascii(lead), 1};
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (bytes == 0 || bytes > text.size()) return {};
  uint32_t code = lead & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    code = (code << 6) | (next & 0x3F);
  }
  const bool sign = (code >= 0x2000 && code <= 0x206F) || code >= 0x3000;
  return {sign ? Kind::sign : Kind::letter, bytes};
}

size_t length_of_address(std::string_view text) {
  if (text.substr(0, 7) != "http://" && text.substr(0, 8) != "https://") return 0;
  size_t end = 0;
  while (end < text.size() && static_cast<unsigned char>(text[end]) > ' ' && text[end] != 0x7F)
    ++end;
  return end;
}

constexpr size_t k_none = static_cast<size_t>(-1);

size_t find(const PieceTable& table, std::string_view piece) {
  size_t begin = 0, end = table.size();
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    if (table[middle] < piece) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin < table.size() && table[begin] == piece ? begin : k_none;
}

void add_word(const std::string& word, const PieceTable& table, std::vector<uint32_t>& out) {
  const size_t before = out.size();
  std::string piece;
  for (size_t at = 0; at < word.size() && word.size() <= k_word_pieces_longest_word;) {
    size_t found = k_none, end = word.size();
    for (; end > at && found == k_none; --end) {
      piece.assign(at > 0 ? "##" : "");
      piece.append(word, at, end - at);
      found = find(table, piece);
    }
    if (found == k_none) {
      out.resize(before);
      break;
    }
    out.push_back(static_cast<uint32_t>(found));
    at = end + 1;
  }
  if (out.size() == before) out.push_back(table.unknown);
}

}  // namespace

std::vector<uint32_t> word_pieces(std::string_view text, const PieceTable& table, size_t most) {
  std::vector<uint32_t> out;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) add_word(word, table, out);
    word.clear();
  };
  for (size_t at = 0; at < text.size() && out.size() < most;) {
    if (const size_t address = length_of_address(text.substr(at))) {
      end_word();
      at += address;
      continue;
    }
    const Character next = character(text.substr(at));
    if (next.kind != Kind::letter) end_word();
    if (next.kind != Kind::space) {
      for (char c : text.substr(at, next.bytes))
        word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    if (next.kind == Kind::sign) end_word();
    at += next.bytes;
  }
  end_word();
  if (out.size() > most) out.resize(most);
  return out;
}

}  // namespace cufit::explain
