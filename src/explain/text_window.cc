// SPDX-License-Identifier: Apache-2.0
#include "explain/text_window.h"

#include <algorithm>
#include <cstring>

namespace cufit::explain {
namespace {

constexpr size_t k_lines_around = 2;
constexpr size_t k_most_ends = 256;
constexpr size_t k_half = 2048;  // bytes of an overlong line on each side of the word

bool follows(const formats::TextLine& a, const formats::TextLine& b) {
  return b.number <= a.number + 1;
}

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// What a shape says beside literal bytes (PatternRow::shape).
constexpr char k_digit = '\x01', k_edge = '\b';
bool is_literal(char c) { return c != k_digit && c != k_edge; }

// The next part of a text up to `end`, which is taken off with it.
std::string_view take_bytes(std::string_view& text, char end) {
  const size_t at = std::min(text.find(end), text.size());
  const std::string_view out = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return out;
}

size_t to_number(std::string_view digits) {
  size_t out = 0;
  for (char c : digits) out = out * 10 + static_cast<size_t>(c - '0');
  return out;
}

// Every byte in lower case, white space of any kind as a blank.
constexpr std::array<char, 256> folds() {
  std::array<char, 256> out{};
  for (size_t c = 0; c < 256; ++c) {
    const bool blank = c == ' ' || (c >= '\t' && c <= '\r'), upper = c >= 'A' && c <= 'Z';
    out[c] = static_cast<char>(blank ? ' ' : upper ? c - 'A' + 'a' : c);
  }
  return out;
}
constexpr std::array<char, 256> k_folded = folds();

// How common a byte is in texts, roughly.
constexpr std::array<uint8_t, 256> commonness() {
  std::array<uint8_t, 256> out{};
  uint8_t value = 1;
  for (char c : std::string_view("zqjxkvwybfg_-/:.,pmudhlc9876543210snroiate "))
    out[static_cast<unsigned char>(c)] = value++;
  return out;
}
constexpr std::array<uint8_t, 256> k_common = commonness();

void add_runs(const std::string& flat, size_t first, size_t last, Runs& runs) {
  for (size_t i = first; i < last && i + 3 <= flat.size(); ++i) {
    const uint32_t bit = run_bit(flat.data() + i);
    runs[bit / 64] |= uint64_t{1} << (bit % 64);
  }
}

}  // namespace

void WindowLines::set(Line& line, std::string_view text) {
  line.text.resize(text.size()), line.flat.resize(text.size());
  char* flat = line.flat.data();
  char before = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i], folded = k_folded[static_cast<unsigned char>(c)];
    line.text[i] = folded == ' ' ? c : folded;
    *flat = folded;
    flat += !(folded == ' ' && before == ' ');
    before = folded;
  }
  line.flat.resize(static_cast<size_t>(flat - line.flat.data()));
  line.runs = {};
  add_runs(line.flat, 0, line.flat.size(), line.runs);
}

const WindowLines::Line& WindowLines::at(std::span<const formats::TextLine> lines, size_t index) {
  const size_t place = index % k_kept;
  if (indices_[place] != index) {
    set(lines_[place], lines[index].text);
    indices_[place] = index;
  }
  return lines_[place];
}

const WindowLines::Line& WindowLines::piece(std::string_view text) {
  set(lines_[k_kept], text);
  return lines_[k_kept];
}

void Window::move_to(std::span<const formats::TextLine> lines, size_t index, size_t column,
                     WindowLines& made) {
  text_.clear(), begins_.clear(), flat_.clear();
  runs_ = {};
  size_t first = index, last = index;
  while (first > 0 && index - first < k_lines_around && follows(lines[first - 1], lines[first]))
    --first;
  while (last + 1 < lines.size() && last - index < k_lines_around &&
         follows(lines[last], lines[last + 1]))
    ++last;
  for (size_t i = first; i <= last; ++i) {
    if (i > first) text_ += '\n';
    begins_.push_back({text_.size(), i});
    const std::string_view line = lines[i].text;
    std::string_view part = line.substr(0, k_half);
    if (i == index) {
      middle_ = text_.size();
      part = line.substr(column > k_half ? column - k_half : 0, 2 * k_half);
      middle_size_ = part.size();
    } else if (i < index) {
      part = line.substr(line.size() - std::min(line.size(), k_half));
    }
    add(part.size() == line.size() ? made.at(lines, i) : made.piece(part));
  }
}

// One more line. Its own runs are in flat_ too: what it begins with blank, flat_ ends with then.
void Window::add(const WindowLines::Line& line) {
  text_ += line.text;
  const size_t before = flat_.size();
  if (begins_.size() > 1 && (flat_.empty() || flat_.back() != ' ')) flat_ += ' ';
  const bool skip = !flat_.empty() && flat_.back() == ' ' && line.flat.substr(0, 1) == " ";
  flat_.append(line.flat, skip ? 1 : 0);
  for (size_t i = 0; i < runs_.size(); ++i) runs_[i] |= line.runs[i];
  add_runs(flat_, before - std::min<size_t>(before, 2), before + 1, runs_);
}

size_t Window::place_of(size_t flat) const {
  size_t count = 0;
  for (size_t i = 0; i < text_.size(); ++i) {
    if (is_blank(text_[i]) && i > 0 && is_blank(text_[i - 1])) continue;
    if (count++ == flat) return i;
  }
  return std::string::npos;
}

bool Window::may_hold(std::string_view text) const {
  size_t literal = 0;  // bytes up to here
  for (size_t i = 0; i < text.size(); ++i) {
    literal = is_literal(text[i]) ? literal + 1 : 0;
    if (literal >= 3 && !has_run(text.data() + i - 2)) return false;
  }
  return true;
}

size_t Window::match_at(size_t at, std::string_view text) const {
  for (const char c : text) {
    if (c == k_edge) {
      if ((at > 0 && is_word(flat_[at - 1])) == (at < flat_.size() && is_word(flat_[at])))
        return std::string::npos;
      continue;
    }
    if (at >= flat_.size()) return std::string::npos;
    if (c == k_digit ? flat_[at] < '0' || flat_[at] > '9' : flat_[at] != c)
      return std::string::npos;
    ++at;
  }
  return at;
}

// By the byte of it that is least common in texts.
size_t Window::find_literal(std::string_view literal, size_t from) const {
  size_t rare = 0;
  for (size_t i = 1; i < literal.size(); ++i) {
    if (k_common[static_cast<unsigned char>(literal[i])] <
        k_common[static_cast<unsigned char>(literal[rare])])
      rare = i;
  }
  while (from + literal.size() <= flat_.size()) {
    const size_t room = flat_.size() - literal.size() - from + 1;
    const void* found = std::memchr(flat_.data() + from + rare, literal[rare], room);
    if (!found) return std::string::npos;
    const auto at = static_cast<size_t>(static_cast<const char*>(found) - flat_.data()) - rare;
    if (std::memcmp(flat_.data() + at, literal.data(), literal.size()) == 0) return at;
    from = at + 1;
  }
  return std::string::npos;
}

Window::Place Window::find(std::string_view text, size_t from) const {
  // Its longest run of literal bytes is looked for, the rest is compared around it.
  size_t anchor = 0, size = 0, before = 0, bytes = 0, run = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    bytes += text[i] != k_edge;
    run = is_literal(text[i]) ? run + 1 : 0;
    if (run > size) size = run, anchor = i + 1 - run, before = bytes - run;
  }
  const std::string_view literal = text.substr(anchor, size);
  for (size_t at = find_literal(literal, from + before); at != std::string::npos;
       at = find_literal(literal, at + 1)) {
    const size_t end = size == text.size() ? at + size : match_at(at - before, text);
    if (end != std::string::npos) return {at - before, end};
  }
  return {std::string::npos, 0};
}

// One walk over the bytes, as this is asked for most patterns and mostly answered with no.
bool Window::may_fit(std::string_view shape) const {
  const char *at = shape.data(), *const end = at + shape.size();
  const auto is_within = [&](const char* p) { return p < end && *p != '\n'; };
  while (at < end) {
    while (is_within(at) && *at != '\t') ++at;  // the gap
    bool any = false;
    while (!any && is_within(at)) {
      ++at;
      any = true;
      ptrdiff_t literal = 0;
      for (; is_within(at) && *at != '\t'; ++at) {
        literal = is_literal(*at) ? literal + 1 : 0;
        any = any && (literal < 3 || has_run(at - 2));
      }
    }
    if (!any) return false;
    const void* next = std::memchr(at, '\n', static_cast<size_t>(end - at));
    at = next ? static_cast<const char*>(next) + 1 : end;
  }
  return true;
}

bool Window::fits(std::string_view shape) const {
  if (!may_fit(shape)) return false;  // mostly something is not here at all
  // Where the parts so far can end, rising.
  std::array<size_t, k_most_ends> both[2];
  std::span<size_t> ends;
  for (bool first = true; !shape.empty(); first = false) {
    std::string_view part = take_bytes(shape, '\n');
    const size_t gap = to_number(take_bytes(part, '\t'));
    std::array<size_t, k_most_ends>& next = both[ends.data() == both[0].data()];
    size_t count = 0;
    const bool several = part.find('\t') != part.npos;  // else may_fit() has asked
    while (!part.empty()) {
      const std::string_view text = take_bytes(part, '\t');
      if (several && !may_hold(text)) continue;
      size_t from = 0;  // of ends
      for (Place at = find(text, first ? 0 : ends.front()); at.begin != std::string::npos;
           at = find(text, at.begin + 1)) {
        if (!first) {
          while (from < ends.size() && ends[from] + gap < at.begin) ++from;
          if (from == ends.size()) break;
          if (ends[from] > at.begin) continue;
        }
        if (count == next.size()) return true;  // let the regular expression say it
        next[count++] = at.end;
      }
    }
    if (count == 0) return false;
    ends = std::span(next).first(count);
    std::sort(ends.begin(), ends.end());
  }
  return true;
}

size_t Window::find_plain(std::string_view plain) const {
  const bool edge_before = plain.substr(0, 1) == "\b";
  if (edge_before) plain.remove_prefix(1);
  const bool edge_after = !plain.empty() && plain.back() == '\b';
  if (edge_after) plain.remove_suffix(1);
  if (plain.empty() || !may_hold(plain)) return std::string::npos;
  for (size_t at = flat_.find(plain); at != std::string::npos; at = flat_.find(plain, at + 1)) {
    const size_t end = at + plain.size();
    const bool word_before = at > 0 && is_word(flat_[at - 1]);
    const bool word_after = end < flat_.size() && is_word(flat_[end]);
    if (edge_before && word_before == is_word(plain.front())) continue;
    if (edge_after && word_after == is_word(plain.back())) continue;
    return place_of(at);
  }
  return std::string::npos;
}

void ShapeRuns::read(std::string_view shape, std::string_view word) {
  known = true;
  while (!shape.empty() && count < bits.size()) {
    std::string_view part = take_bytes(shape, '\n');
    take_bytes(part, '\t');  // the gap
    const std::string_view text = take_bytes(part, '\t');
    if (!part.empty()) continue;  // one of several
    size_t literal = 0;
    for (size_t i = 0; i < text.size() && count < bits.size(); ++i) {
      literal = is_literal(text[i]) ? literal + 1 : 0;
      if (literal < 3 || word.find(text.substr(i - 2, 3)) != word.npos) continue;
      bits[count++] = static_cast<uint16_t>(run_bit(text.data() + i - 2));
      literal = 0;  // the next one shares no byte with it
    }
  }
}

std::pair<size_t, size_t> Window::line_at(size_t offset) const {
  auto after =
      std::upper_bound(begins_.begin(), begins_.end(), std::pair<size_t, size_t>{offset, SIZE_MAX});
  --after;
  return {after->second, after->first};
}

}  // namespace cufit::explain
