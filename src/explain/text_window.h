// SPDX-License-Identifier: Apache-2.0
// Some lines around a word in one piece of memory, for patterns that a line break may interrupt,
// and the searches that need no regular expression.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/prose/text_lines.h"

namespace cufit::explain {

// A bit for every run of three bytes of a text, and which one.
using Runs = std::array<uint64_t, 64>;
inline uint32_t run_bit(const char* bytes) {
  const auto byte = [&](size_t i) { return uint32_t{static_cast<unsigned char>(bytes[i])}; };
  return ((byte(0) | byte(1) << 8 | byte(2) << 16) * 0x9E3779B1u) >> 20;
}

// Lines as windows take them. A line stands in five windows one after the other: the last ones are kept.
class WindowLines {
 public:
  struct Line {
    std::string text;  // in lower case
    std::string flat;  // the same with each run of white space as one blank
    Runs runs{};       // of flat
  };
  // The line at `index` of the lines that are always the same, until eight others were asked for.
  const Line& at(std::span<const formats::TextLine> lines, size_t index);
  // A piece of a line, until the next one.
  const Line& piece(std::string_view text);

 private:
  static void set(Line& line, std::string_view text);

  static constexpr size_t k_kept = 8;
  std::array<Line, k_kept + 1> lines_;  // the last one: of piece()
  std::array<size_t, k_kept> indices_ = {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX,
                                         SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX};
};

class Window {
 public:
  Window() = default;
  // The line at `index`, overlong ones around the byte `column`, and two lines before and after it.
  Window(std::span<const formats::TextLine> lines, size_t index, size_t column) {
    WindowLines made;
    move_to(lines, index, column, made);
  }
  // The same in the memory of the window that it was.
  void move_to(std::span<const formats::TextLine> lines, size_t index, size_t column,
               WindowLines& made);

  const std::string& text() const { return text_; }  // in lower case
  // Whether the literals of a PatternRow::shape stand here in their order and near enough to each
  // other. False: the pattern matches nowhere in text().
  bool fits(std::string_view shape) const;
  // Place of a text in lower case in text(), where a blank is any white space and "\\b" at an end
  // is a word's edge (PatternRow::plain); npos = not there.
  size_t find_plain(std::string_view plain) const;
  // The line at `index` alone, within text().
  std::string_view middle() const { return std::string_view(text_).substr(middle_, middle_size_); }
  // Whether a run of three bytes is here, by its bit.
  bool has_run(uint32_t bit) const { return (runs_[bit / 64] >> (bit % 64)) & 1; }
  // Index of the line that holds the byte, and where that line begins.
  std::pair<size_t, size_t> line_at(size_t offset) const;

 private:
  // Perhaps in flat_: all runs of three bytes of it are.
  bool may_hold(std::string_view text) const;
  // Where a text of a shape begins and ends in flat_, at `from` or after; npos = nowhere.
  struct Place {
    size_t begin, end;
  };
  Place find(std::string_view text, size_t from) const;
  size_t find_literal(std::string_view literal, size_t from) const;
  size_t match_at(size_t at, std::string_view text) const;  // its end; npos = it does not
  bool has_run(const char* bytes) const { return has_run(run_bit(bytes)); }
  void add(const WindowLines::Line& line);
  size_t place_of(size_t flat) const;  // in text_, of a byte of flat_
  // Whether each part of a shape may be here, wherever.
  bool may_fit(std::string_view shape) const;

  std::string text_;
  std::vector<std::pair<size_t, size_t>> begins_;  // offset in text_, index of the line
  size_t middle_ = 0, middle_size_ = 0;
  std::string flat_;  // lower case, each run of white space one blank
  Runs runs_{};       // of flat_
};

// Up to four runs that a text with the literals of a PatternRow::shape has, beside those of its word: what is asked first.
struct ShapeRuns {
  std::array<uint16_t, 4> bits{};
  uint8_t count = 0;
  bool known = false;

  void read(std::string_view shape, std::string_view word);
  bool are_in(const Window& window) const {
    for (size_t i = 0; i < count; ++i) {
      if (!window.has_run(bits[i])) return false;
    }
    return true;
  }
};

}  // namespace cufit::explain
