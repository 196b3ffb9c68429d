// SPDX-License-Identifier: Apache-2.0
#include "report/terminal/width.h"

#include <algorithm>

#include "base/terminal_marks.h"
#include "base/format.h"

namespace cufit::report {
namespace {

struct Range {
  char32_t first, last;
};

// East_Asian_Width W and F (Unicode 15, UAX #11), neighbouring blocks joined; sorted.
constexpr Range k_width_wide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},
    {0x23F0, 0x23F0},   {0x23F3, 0x23F3},   {0x25FD, 0x25FE},   {0x2614, 0x2615},
    {0x2648, 0x2653},   {0x267F, 0x267F},   {0x2693, 0x2693},   {0x26A1, 0x26A1},
    {0x26AA, 0x26AB},   {0x26BD, 0x26BE},   {0x26C4, 0x26C5},   {0x26CE, 0x26CE},
    {0x26D4, 0x26D4},   {0x26EA, 0x26EA},   {0x26F2, 0x26F3},   {0x26F5, 0x26F5},
    {0x26FA, 0x26FA},   {0x26FD, 0x26FD},   {0x2705, 0x2705},   {0x270A, 0x270B},
    {0x2728, 0x2728},   {0x274C, 0x274C},   {0x274E, 0x274E},   {0x2753, 0x2755},
    {0x2757, 0x2757},   {0x2795, 0x2797},   {0x27B0, 0x27B0},   {0x27BF, 0x27BF},
    {0x2B1B, 0x2B1C},   {0x2B50, 0x2B50},   {0x2B55, 0x2B55},   {0x2E80, 0x303E},
    {0x3041, 0x3247},   {0x3250, 0x4DBF},   {0x4E00, 0xA4CF},   {0xA960, 0xA97C},
    {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE10, 0xFE19},   {0xFE30, 0xFE6B},
    {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},   {0x16FE0, 0x18CD5}, {0x18D00, 0x18D08},
    {0x1AFF0, 0x1B2FB}, {0x1F004, 0x1F004}, {0x1F0CF, 0x1F0CF}, {0x1F18E, 0x1F18E},
    {0x1F191, 0x1F19A}, {0x1F200, 0x1F320}, {0x1F32D, 0x1F335}, {0x1F337, 0x1F37C},
    {0x1F37E, 0x1F393}, {0x1F3A0, 0x1F3CA}, {0x1F3CF, 0x1F3D3}, {0x1F3E0, 0x1F3F0},
    {0x1F3F4, 0x1F3F4}, {0x1F3F8, 0x1F43E}, {0x1F440, 0x1F440}, {0x1F442, 0x1F4FC},
    {0x1F4FF, 0x1F53D}, {0x1F54B, 0x1F54E}, {0x1F550, 0x1F567}, {0x1F57A, 0x1F57A},
    {0x1F595, 0x1F596}, {0x1F5A4, 0x1F5A4}, {0x1F5FB, 0x1F64F}, {0x1F680, 0x1F6C5},
    {0x1F6CC, 0x1F6CC}, {0x1F6D0, 0x1F6D2}, {0x1F6D5, 0x1F6DF}, {0x1F6EB, 0x1F6EF},
    {0x1F6F4, 0x1F6FC}, {0x1F7E0, 0x1F7F0}, {0x1F90C, 0x1F93A}, {0x1F93C, 0x1F945},
    {0x1F947, 0x1F9FF}, {0x1FA70, 0x1FAF8}, {0x20000, 0x2FFFD}, {0x30000, 0x3FFFD},
};

// Characters that take no column: combining marks of the blocks that occur in names and paths,
// joiners, direction marks, variation selectors. Not all of category Mn; a rare mark too many
// shifts one line by one column.
constexpr Range k_zero[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A}, {0x064B, 0x065F},
    {0x0670, 0x0670}, {0x06D6, 0x06DC}, {0x093C, 0x093C}, {0x0941, 0x0948}, {0x094D, 0x094D},
    {0x0E31, 0x0E31}, {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
    {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x2069}, {0x20D0, 0x20F0}, {0x302A, 0x302D},
    {0x3099, 0x309A}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0100, 0xE01EF},
};

template <size_t n>
bool in(const Range (&ranges)[n], char32_t c) {
  const Range* after =
      std::upper_bound(ranges, ranges + n, c,
                       [](char32_t value, const Range& range) { return value < range.first; });
  return after != ranges && c <= (after - 1)->last;
}

int columns_of(char32_t c) {
  if (c < 0x20 || (c >= 0x7F && c < 0xA0)) return 0;
  if (c < 0x300) return 1;
  if (in(k_zero, c)) return 0;
  return in(k_width_wide, c) ? 2 : 1;
}

bool one_of(char32_t c, std::u32string_view set) {
  return set.find(c) != std::u32string_view::npos;
}

// A line may not begin with these (the usual Chinese and English typesetting rule).
bool closing(char32_t c) { return one_of(c, U",.;:!?)]}%'\"，。、；：！？）】》〉」』〕｝”’…％"); }
bool opening(char32_t c) { return one_of(c, U"([{（【《〈「『〔｛“‘"); }

struct Unit {
  std::string text;  // never broken
  int columns = 0;
  bool space_before = false;
};

// Cuts one line (no \n) into units between which a break is allowed.
std::vector<Unit> units_of(std::string_view line) {
  std::vector<Unit> units;
  Unit unit;
  char32_t before = 0;  // last character of `unit`
  auto finish = [&] {
    if (!unit.text.empty()) units.push_back(std::move(unit));
    unit = {};
    before = 0;
  };
  size_t at = 0;
  while (at < line.size()) {
    CodePoint c = decode(line, at);
    size_t length = c.length;
    if (c.value == '`') {  // a quoted span is one unbreakable piece
      size_t end = line.find('`', at + 1);
      if (end != std::string_view::npos) length = end + 1 - at;
    } else if (c.value == ' ' || c.value == '\t') {
      finish();
      unit.space_before = true;
      at += length;
      continue;
    }
    int width = columns(line.substr(at, length));
    bool wide_side = columns_of(before) == 2 || columns_of(c.value) == 2;
    if (before != 0 && width > 0 && wide_side && !closing(c.value) && !opening(before)) finish();
    unit.text.append(line.substr(at, length));
    unit.columns += width;
    before = decode(line, at).value == '`' ? U'`' : (width > 0 ? c.value : before);
    at += length;
  }
  finish();
  return units;
}

void wrap_line(std::string_view line, int width, std::vector<std::string>& out) {
  std::string current;
  int used = 0;
  for (const Unit& unit : units_of(line)) {
    int gap = unit.space_before && used > 0 ? 1 : 0;
    if (used > 0 && used + gap + unit.columns > width) {
      out.push_back(std::move(current));
      current.clear();
      used = gap = 0;
    }
    if (gap) current += ' ';
    current += unit.text;
    used += gap + unit.columns;
  }
  out.push_back(std::move(current));
}

}  // namespace

CodePoint decode(std::string_view utf8, size_t at) {
  const CodePoint bad{0xFFFD, 1};
  auto byte = [&](size_t i) { return static_cast<unsigned char>(utf8[i]); };
  unsigned char first = byte(at);
  if (first < 0x80) return {first, 1};
  size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + length > utf8.size()) return bad;
  char32_t value = first & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return bad;
    value = (value << 6) | (byte(at + i) & 0x3F);
  }
  static constexpr char32_t k_smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < k_smallest[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
    return bad;
  return {value, length};
}

int columns(std::string_view utf8) {
  int sum = 0;
  for (size_t at = 0; at < utf8.size();) {
    CodePoint c = decode(utf8, at);
    sum += columns_of(c.value);
    at += c.length;
  }
  return sum;
}

std::vector<std::string> wrap(std::string_view utf8, int width) {
  std::vector<std::string> out;
  for (std::string_view line : split(utf8, '\n')) wrap_line(line, std::max(width, 1), out);
  return out;
}

std::string pad(std::string_view utf8, int width) {
  int missing = width - columns(utf8);
  std::string out(utf8);
  if (missing > 0) out.append(static_cast<size_t>(missing), ' ');
  return out;
}

std::string printable(std::string_view utf8) {
  std::string out;
  out.reserve(utf8.size());
  for (size_t at = 0; at < utf8.size();) {
    CodePoint c = decode(utf8, at);
    bool control = (c.value < 0x20 && c.value != '\n') || is_late_control(c.value);
    bool direction = is_direction_mark(c.value);
    if (c.value == '\t') {
      out += ' ';
    } else if (control) {
      out += format("\\x{:02x}", static_cast<unsigned>(c.value));
    } else if (direction) {
      out += format("\\u{:04x}", static_cast<unsigned>(c.value));
    } else if (c.value == 0xFFFD && c.length == 1) {
      out += "\xEF\xBF\xBD";
    } else {
      out.append(utf8.substr(at, c.length));
    }
    at += c.length;
  }
  return out;
}

}  // namespace cufit::report
