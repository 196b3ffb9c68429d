// SPDX-License-Identifier: Apache-2.0
#include "report/pattern_text.h"

#include "base/format.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr std::string_view k_gap = "...";

// What follows an atom: how often it must and may stand there.
struct Count {
  int least = 1;
  bool many = false;  // an open or large number: a gap rather than a letter
};

class Reader {
 public:
  explicit Reader(std::string_view pattern) : pattern_(pattern) {}

  std::string alternatives() {
    std::string first = sequence();
    while (at_ < pattern_.size() && pattern_[at_] == '|') {
      ++at_;
      sequence();
    }
    return first;
  }

 private:
  std::string sequence() {
    std::string out;
    while (at_ < pattern_.size() && pattern_[at_] != '|' && pattern_[at_] != ')') {
      const std::string text = atom();
      const Count times = count();
      if (times.least == 0 && !(times.many && text == k_gap)) {
        // Left out, unless it is any text: `.*` is a gap; "s?" and "(?:old )?" need not be there.
        if (text == " ") out += times.many ? " " : "";
        continue;
      }
      out += text;
    }
    return out;
  }

  std::string atom() {
    const char c = pattern_[at_++];
    if (c == '(') return group();
    if (c == '[') return set();
    if (c == '\\') return escape();
    if (c == '^' || c == '$') return {};
    // A single "." mostly stands for a quotation mark of any kind.
    if (c == '.') return repeats() ? std::string(k_gap) : "'";
    --at_;
    return character();
  }

  // One character of UTF-8, of which a count says how often it stands there.
  std::string character() {
    const size_t length = decode(pattern_, at_).length;
    at_ += length;
    return std::string(pattern_.substr(at_ - length, length));
  }

  bool repeats() const {
    return at_ < pattern_.size() &&
           (pattern_[at_] == '*' || pattern_[at_] == '+' || pattern_[at_] == '{');
  }

  std::string group() {
    if (pattern_.substr(at_, 1) == "?") {  // "(?:", "(?i)"
      const size_t end = pattern_.find_first_of(":)", at_);
      at_ = end == pattern_.npos ? pattern_.size() : end + 1;
      if (end != pattern_.npos && pattern_[end] == ')') return {};
    }
    std::string out = alternatives();
    if (at_ < pattern_.size()) ++at_;  // )
    return out;
  }

  // A set stands for its first character, for a number, or, where it shuts some out, for any text.
  std::string set() {
    const bool others = pattern_.substr(at_, 1) == "^";
    if (others) ++at_;
    std::string first;
    for (bool begin = true; at_ < pattern_.size() && (begin || pattern_[at_] != ']');
         begin = false) {
      const std::string text = pattern_[at_] == '\\' ? (++at_, escape()) : character();
      if (first.empty()) first = text;
    }
    if (at_ < pattern_.size()) ++at_;  // ]
    if (others) return std::string(k_gap);
    if (!first.empty() && first[0] >= '0' && first[0] <= '9') return "N";
    return first;
  }

  std::string escape() {
    if (at_ >= pattern_.size()) return {};
    const char c = pattern_[at_++];
    switch (c) {
      case 'b':
      case 'B':
      case 'A':
      case 'z':
        return {};
      case 'd':
        return "N";
      case 's':
      case 'n':
      case 'W':
        return " ";
      case 'w':
      case 'S':
      case 'D':
        return std::string(k_gap);
      case 'x': {
        const std::string_view digits = pattern_.substr(at_, 2);
        at_ += digits.size();
        return digits == "22" ? "\"" : digits == "60" ? "'" : digits == "27" ? "'" : " ";
      }
      default:
        return std::string(1, c);
    }
  }

  Count count() {
    Count out;
    if (at_ >= pattern_.size()) return out;
    const char c = pattern_[at_];
    if (c == '{') {
      const size_t end = pattern_.find('}', at_);
      if (end == pattern_.npos) return out;
      const std::string_view range = pattern_.substr(at_ + 1, end - at_ - 1);
      out.least = starts_with(range, "0") ? 0 : 1;
      out.many = true;
      at_ = end + 1;
    } else if (c == '*' || c == '+' || c == '?') {
      out.least = c == '+' ? 1 : 0;
      out.many = c != '?';
      ++at_;
    }
    if (at_ < pattern_.size() && pattern_[at_] == '?') ++at_;  // lazy
    return out;
  }

  std::string_view pattern_;
  size_t at_ = 0;
};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at))
    text.replace(at, from.size(), to);
}

}  // namespace

std::string pattern_text(std::string_view pattern) {
  std::string out = Reader(pattern).alternatives();
  replace_all(out, "\n", " ");
  replace_all(out, "NN", "N");
  replace_all(out, "  ", " ");
  replace_all(out, "... ...", "...");
  replace_all(out, "......", "...");
  while (starts_with(out, " ") || starts_with(out, k_gap))
    out.erase(0, out[0] == ' ' ? 1 : k_gap.size());
  return std::string(trim(out));
}

}  // namespace cufit::report
