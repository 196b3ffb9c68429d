// SPDX-License-Identifier: Apache-2.0
// What of a pattern can be searched for without a regular expression: see gen_tables.h. The pattern
// is read into a tree of literal bytes, gaps and groups; what is not understood is a gap, so that
// nothing is asked of a text that a match could lack.
#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "gen_tables.h"

namespace gen {
namespace {

constexpr size_t k_least_bytes = 3;   // of the word that the text is searched for
constexpr long k_least_other = 1;     // of further literals
constexpr size_t k_endless = 100000;  // a gap without a limit
constexpr size_t k_most_digits = 8;   // of one number that a shape asks for
// In the literals of a shape: any digit, and a word's edge, which takes no byte.
constexpr char k_digit = '\x01', k_edge = '\b';

bool is_literal_byte(char c) { return c != k_digit && c != k_edge; }
size_t bytes_of(const std::string& text) {
  return text.size() - static_cast<size_t>(std::count(text.begin(), text.end(), k_edge));
}

size_t add(size_t a, size_t b) { return std::min(k_endless, a + b); }
size_t times(size_t a, size_t b) { return a && b > k_endless / a ? k_endless : a * b; }

struct Item {
  enum Kind { literal, gap, group } kind = gap;
  std::string text;                                  // literal: one character in lower case
  size_t bytes = 0;                                  // literal, gap: at most
  std::vector<std::vector<Item>> alternatives = {};  // group
  size_t least = 1, most = 1;                        // how often
};
using Items = std::vector<Item>;

size_t longest(const Items& items);
size_t longest(const Item& item) {
  size_t one = item.bytes;
  for (const Items& alternative : item.alternatives) one = std::max(one, longest(alternative));
  return times(one, item.most);
}
size_t longest(const Items& items) {
  size_t out = 0;
  for (const Item& item : items) out = add(out, longest(item));
  return out;
}

class Parser {
 public:
  // `any_bytes`: what one character can take: 4 where the pattern is matched as UTF-8.
  Parser(std::string_view pattern, size_t any_bytes) : in_(pattern), any_(any_bytes) {}

  std::vector<Items> alternatives() {
    std::vector<Items> out(1);
    while (at_ < in_.size() && in_[at_] != ')') {
      if (in_[at_] == '|') {
        ++at_;
        out.emplace_back();
        continue;
      }
      Item item = one();
      quantifier(item);
      if (item.kind != Item::gap || item.bytes > 0) out.back().push_back(std::move(item));
    }
    return out;
  }

 private:
  static Item gap_of(size_t bytes) { return {Item::gap, {}, bytes}; }
  static Item literal_of(std::string_view text) {
    Item out{Item::literal, std::string(text), text.size()};
    for (char& c : out.text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
  }

  Item one() {
    const char c = in_[at_];
    if (c == '(') return group();
    if (c == '[') return char_class();
    if (c == '\\' && at_ + 1 < in_.size()) return escape();
    if (c == '^' || c == '$') return ++at_, gap_of(0);
    if (c == '.') return ++at_, gap_of(any_);
    size_t end = at_ + 1;  // the whole of a character of several bytes
    while (end < in_.size() && (in_[end] & 0xC0) == 0x80) ++end;
    Item out = literal_of(in_.substr(at_, end - at_));
    at_ = end;
    return out;
  }

  Item escape() {
    const char c = in_[++at_];
    ++at_;
    if (!std::isalnum(static_cast<unsigned char>(c))) return literal_of(std::string_view(&c, 1));
    if (c == 'd') return literal_of(std::string_view(&k_digit, 1));
    if (c == 'b') return {Item::literal, std::string(1, k_edge), 0};
    if (c == 'B' || c == 'A' || c == 'z') return gap_of(0);
    if (at_ < in_.size() && (c == 'x' || c == 'p' || c == 'P'))
      at_ = in_[at_] == '{' ? std::min(in_.find('}', at_), in_.size() - 1) + 1
                            : std::min(at_ + (c == 'x' ? 2 : 1), in_.size());
    return gap_of(c == 'w' || c == 's' || c == 'n' || c == 't' ? 1 : any_);
  }

  Item char_class() {
    const size_t begin = ++at_;
    if (at_ < in_.size() && in_[at_] == '^') ++at_;
    if (at_ < in_.size() && in_[at_] == ']') ++at_;
    while (at_ < in_.size() && in_[at_] != ']') {
      if (in_.substr(at_, 2) == "[:") at_ = std::min(in_.find(":]", at_), in_.size() - 2) + 1;
      at_ += in_[at_] == '\\' ? 2 : 1;
    }
    const std::string_view members = in_.substr(begin, std::min(at_, in_.size()) - begin);
    at_ = std::min(at_ + 1, in_.size());
    const bool digits =
        !members.empty() && members.find_first_not_of("0123456789-") == members.npos;
    return digits && members[0] != '-' && members.back() != '-'
               ? literal_of(std::string_view(&k_digit, 1))
               : gap_of(any_);
  }

  Item group() {
    ++at_;
    if (in_.substr(at_, 2) == "?:") {
      at_ += 2;
    } else if (in_.substr(at_, 3) == "?P<") {
      at_ = std::min(in_.find('>', at_), in_.size() - 1) + 1;
    }
    const bool flags = at_ < in_.size() && in_[at_] == '?';  // (?i): nothing is known of it
    Item out{Item::group, {}, flags ? k_endless : 0};
    Parser inner(in_.substr(at_), any_);
    out.alternatives = inner.alternatives();
    if (flags) out.alternatives.assign(1, {});
    at_ = std::min(at_ + inner.at_ + 1, in_.size());
    return out;
  }

  void quantifier(Item& item) {
    if (at_ >= in_.size()) return;
    const char c = in_[at_];
    if (c == '*' || c == '?') item.least = 0;
    if (c == '*' || c == '+') item.most = k_endless;
    if (c == '{') {
      const size_t end = in_.find('}', at_);
      if (end == in_.npos) return;
      const std::string counts(in_.substr(at_ + 1, end - at_ - 1));
      const size_t comma = counts.find(',');
      item.least = std::strtoul(counts.c_str(), nullptr, 10);
      item.most = comma == counts.npos ? item.least
                  : comma + 1 == counts.size()
                      ? k_endless
                      : std::strtoul(counts.c_str() + comma + 1, nullptr, 10);
      at_ = end;
    } else if (c != '*' && c != '+' && c != '?') {
      return;
    }
    ++at_;
    if (at_ < in_.size() && in_[at_] == '?') ++at_;
  }

  std::string_view in_;
  size_t any_, at_ = 0;
};

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

// The literals of a pattern in their order, with what may be between them.
class Skeleton {
 public:
  struct Part {
    size_t gap;                    // bytes after the part before, at most
    std::vector<std::string> any;  // one of these
    std::string with_blanks = {};  // the only one, blanks at its ends included
  };

  explicit Skeleton(const Items& items) {
    sequence(items);
    cut();
  }
  std::vector<Part> parts;

  // The part that tells most: its shortest literal is the longest.
  std::vector<std::string> most_telling() const {
    std::vector<std::string> best;
    for (const Part& part : parts) {
      if (shortest(part.any) > shortest(best)) best = part.any;
    }
    return best;
  }
  static size_t shortest(const std::vector<std::string>& texts) {
    size_t out = texts.empty() ? 0 : bytes_of(texts[0]);
    for (const std::string& text : texts) out = std::min(out, bytes_of(text));
    return out;
  }

 private:
  void sequence(const Items& items) {
    for (const Item& item : items) {
      if (item.kind == Item::literal) {
        literal(item);
      } else if (item.kind == Item::group && item.least == 1 && item.most == 1 &&
                 item.alternatives.size() == 1 && item.bytes == 0) {
        sequence(item.alternatives[0]);
      } else if (item.kind == Item::group && item.least >= 1) {
        group(item);
      } else {
        skip(longest(item));
      }
    }
  }

  void literal(const Item& item) {
    const bool blank = item.text == " ";  // in the text, any run of white space is one
    if (item.least == 0) return skip(blank ? 1 : longest(item));
    if (item.text[0] == k_digit) {
      const size_t asked = std::min(item.least, k_most_digits);
      run_.append(asked, k_digit);
      if (item.most > asked) skip(item.most == k_endless ? k_endless : item.most - asked);
      return;
    }
    if (!blank || run_.empty() || run_.back() != ' ') run_ += item.text;
    if (item.most > 1 && !blank) skip(times(item.bytes, item.most - 1));
  }

  void group(const Item& item) {
    cut();
    Part part{gap_, {}};
    size_t around = 0;  // bytes of an alternative beside its literal
    for (const Items& alternative : item.alternatives) {
      const std::vector<std::string> best = Skeleton(alternative).most_telling();
      if (best.empty() || item.bytes > 0) return skip(longest(item));
      part.any.insert(part.any.end(), best.begin(), best.end());
      around =
          std::max(around, longest(alternative) - std::min(longest(alternative), shortest(best)));
    }
    part.gap = add(gap_, around);
    parts.push_back(std::move(part));
    gap_ = add(around, times(longest(item) / std::max<size_t>(item.most, 1), item.most - 1));
  }

  void skip(size_t bytes) {
    cut();
    gap_ = add(gap_, bytes);
  }
  void cut() {
    const std::string text = trimmed(run_);
    if (std::count_if(text.begin(), text.end(), is_literal_byte) >= k_least_other) {
      // A blank at an end may be the same white space as one that the gap takes.
      parts.push_back({add(gap_, run_[0] == ' ' ? 1 : 0), {text}, run_});
      gap_ = run_.back() == ' ' ? 1 : 0;
    } else {
      gap_ = add(gap_, bytes_of(run_));
    }
    run_.clear();
  }

  std::string run_;
  size_t gap_ = 0;
};

// The longest piece of `run` without the bytes `ends` goes into `best` if it is longer than that.
void longer(std::string& best, const std::string& run, std::initializer_list<char> ends) {
  for (auto begin = run.begin();; ++begin) {
    const auto end = std::find_first_of(begin, run.end(), ends.begin(), ends.end());
    if (static_cast<size_t>(end - begin) > best.size()) best.assign(begin, end);
    if (end == run.end()) return;
    begin = end;
  }
}

// The longest word of the parts that every match holds.
std::string search_word(const std::vector<Skeleton::Part>& parts) {
  std::string best, longest_run;
  for (const Skeleton::Part& part : parts) {
    if (part.any.size() != 1) continue;
    const std::string& run = part.any[0];
    longer(longest_run, part.with_blanks, {k_digit, k_edge});
    longer(best, run, {k_digit, k_edge, ' '});
  }
  if (best.size() >= k_least_bytes) return best;
  return longest_run.size() >= k_least_bytes ? longest_run : std::string();
}

std::string encoded(const std::vector<Skeleton::Part>& parts) {
  std::string out;
  for (const Skeleton::Part& part : parts) {
    out += std::to_string(part.gap);
    for (const std::string& text : part.any) out += '\t' + text;
    out += '\n';
  }
  return out;
}

// Without what may match nothing at the end: where a match begins stays the same.
std::string_view without_open_end(std::string_view pattern) {
  for (std::string_view end : {"\\w*", "\\S*", ".*"}) {
    if (pattern.size() > end.size() && pattern.substr(pattern.size() - end.size()) == end &&
        pattern[pattern.size() - end.size() - 1] != '\\')
      return pattern.substr(0, pattern.size() - end.size());
  }
  return pattern;
}

// The pattern in lower case where it is nothing but text, see PatternParts::plain.
std::string plain_text(std::string_view pattern) {
  pattern = without_open_end(pattern);
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    if (std::string_view(".^$|()[]{}*+?").find(c) != std::string_view::npos) return {};
    if (c == '\\') {
      if (++i >= pattern.size()) return {};
      c = pattern[i];
      const bool at_edge = i == 1 || i + 1 == pattern.size();
      if (c == 'b' && at_edge) {
        out += '\b';  // a word ends or begins here
        continue;
      }
      if (std::isalnum(static_cast<unsigned char>(c))) return {};
    }
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out.find("  ") == std::string::npos ? out : std::string();
}

std::string with_any_space(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      out += pattern[i++];
    } else if (pattern[i] == '[') {
      in_class = true;
    } else if (pattern[i] == ']') {
      in_class = false;
    }
    if (pattern[i] == ' ' && !in_class) {
      const bool may_lack =
          i + 1 < pattern.size() && (pattern[i + 1] == '?' || pattern[i + 1] == '*');
      out += may_lack ? "\\s*" : "\\s+";
      if (may_lack) ++i;
    } else {
      out += pattern[i];
    }
  }
  return out;
}

// "[A-z]": what lies between the cases has none, and patterns are matched in lower case.
bool has_mixed_range(std::string_view pattern) {
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      ++i;
      continue;
    }
    in_class = pattern[i] == '[' || (in_class && pattern[i] != ']');
    if (in_class && i + 1 < pattern.size() && pattern[i] == '-' && is_upper(pattern[i - 1]) &&
        is_lower(pattern[i + 1]))
      return true;
  }
  return false;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

// The longest word of a run of literals: graphic ASCII without `|`, and U+3000 to U+9FFF, which have no case.
std::string longest_word(const std::string& run) {
  std::string best, word;
  for (size_t i = 0; i <= run.size(); ++i) {
    const auto c = static_cast<unsigned char>(i < run.size() ? run[i] : ' ');
    if (c > ' ' && c < 0x7F && c != '|') {
      word += run[i];
    } else if (c >= 0xE3 && c <= 0xE9 && i + 3 <= run.size()) {
      word.append(run, i, 3);
      i += 2;
    } else {
      if (word.size() > best.size()) best = word;
      word.clear();
    }
  }
  return best;
}

// Of the parts that every match has, the words of the one whose shortest word is the longest.
std::vector<std::string> words_of_one(const Items& items) {
  std::vector<std::string> best;
  for (const Skeleton::Part& part : Skeleton(items).parts) {
    std::vector<std::string> words;
    for (const std::string& text : part.any) words.push_back(longest_word(text));
    const size_t least = Skeleton::shortest(words), had = Skeleton::shortest(best);
    if (least >= k_least_bytes && (least > had || (least == had && words.size() < best.size())))
      best = std::move(words);
  }
  return best;
}

}  // namespace

std::string words_of(std::string_view pattern) {
  std::set<std::string> all;
  for (const Items& items : Parser(pattern, 4).alternatives()) {
    const std::vector<std::string> words = words_of_one(items);
    if (words.empty()) return {};
    all.insert(words.begin(), words.end());
  }
  std::string out;
  for (const std::string& word : all) out += (out.empty() ? "" : "|") + word;
  return out;
}

PatternParts parts_of(std::string_view pattern, std::string& why) {
  PatternParts out;
  if (has_mixed_range(pattern)) {
    why = "a range from upper to lower case in a class";
    return out;
  }
  out.re = with_any_space(pattern);
  const re2::RE2 compiled(out.re, re2::RE2::Quiet);
  if (!compiled.ok()) {
    why = "RE2: " + compiled.error();
    return out;
  }
  const std::vector<Items> alternatives = Parser(pattern, is_ascii(pattern) ? 1 : 4).alternatives();
  if (alternatives.size() != 1) {
    why = "`|` outside of a group: write two patterns";
    return out;
  }
  const Skeleton skeleton(alternatives[0]);
  out.word = search_word(skeleton.parts);
  if (out.word.empty()) why = "no literal of 3 or more bytes outside of groups and classes";
  out.plain = plain_text(pattern);
  const bool more_than_word = skeleton.parts.size() > 1 ||
                              (!skeleton.parts.empty() && skeleton.parts[0].any[0] != out.word);
  if (out.plain.empty() && more_than_word) out.shape = encoded(skeleton.parts);
  return out;
}

}  // namespace gen
