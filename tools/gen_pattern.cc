// SPDX-License-Identifier: Apache-2.0
// What of a pattern can be searched for without a regular expression: see gen_tables.h. Groups and
// classes are skipped as a whole, so the word is in every match whatever they match.
#include <re2/re2.h>

#include <algorithm>

#include "gen_tables.h"

namespace gen {
namespace {

constexpr size_t k_least_bytes = 3;

bool is_quantifier(char c) { return c == '*' || c == '+' || c == '?' || c == '{'; }

class Scanner {
 public:
  explicit Scanner(std::string_view pattern) : in_(pattern) {}

  // Runs of literal bytes in lower case; a top-level `|` sets `alternatives`.
  std::vector<std::string> runs() {
    while (at_ < in_.size()) step();
    cut();
    return std::move(runs_);
  }
  bool alternatives = false;
  // Groups that every match goes through: what each stands for, one alternative of which is there.
  std::vector<std::string_view> groups;

 private:
  void step() {
    char c = in_[at_];
    if (c == '(') {
      const size_t begin = at_;
      cut();
      skip_group();
      const std::string_view group = in_.substr(begin, at_ - begin);
      const bool may_lack =
          at_ < in_.size() && (in_[at_] == '?' || in_[at_] == '*' || in_[at_] == '{');
      if (!may_lack && group.size() > 2) groups.push_back(group.substr(1, group.size() - 2));
      return skip_quantifier();
    }
    if (c == '[') return skip(&Scanner::skip_class);
    if (c == '.' || c == '^' || c == '$') return skip(&Scanner::skip_one);
    if (c == '|') alternatives = true;
    if (c == '\\') {
      if (at_ + 1 >= in_.size()) return skip(&Scanner::skip_one);
      c = in_[at_ + 1];
      if (std::isalnum(static_cast<unsigned char>(c))) return skip(&Scanner::skip_escape);
      ++at_;
    }
    ++at_;
    if (at_ < in_.size() && is_quantifier(in_[at_])) {
      const bool is_rest = (c & 0xC0) == 0x80;  // of a character of several bytes
      if (in_[at_] == '+') {
        run_ += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      } else if (is_rest) {
        while (!run_.empty() && (run_.back() & 0xC0) == 0x80) run_.pop_back();
        if (!run_.empty()) run_.pop_back();
      }
      cut();
      return skip_quantifier();
    }
    run_ += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }

  void skip(void (Scanner::*part)()) {
    cut();
    (this->*part)();
    skip_quantifier();
  }
  void skip_one() { ++at_; }
  void skip_escape() {
    ++at_;
    if (at_ + 1 < in_.size() && (in_[at_] == 'x' || in_[at_] == 'p') && in_[at_ + 1] == '{')
      at_ = std::min(in_.find('}', at_), in_.size() - 1);
    ++at_;
  }
  void skip_class() {
    ++at_;
    if (at_ < in_.size() && in_[at_] == '^') ++at_;
    if (at_ < in_.size() && in_[at_] == ']') ++at_;
    while (at_ < in_.size() && in_[at_] != ']') at_ += in_[at_] == '\\' ? 2 : 1;
    ++at_;
  }
  void skip_group() {
    for (int depth = 0; at_ < in_.size();) {
      const char c = in_[at_];
      if (c == '[') {
        skip_class();
        continue;
      }
      at_ += c == '\\' ? 2 : 1;
      if (c == '(') ++depth;
      if (c == ')' && --depth == 0) return;
    }
  }
  void skip_quantifier() {
    if (at_ >= in_.size() || !is_quantifier(in_[at_])) return;
    if (in_[at_] == '{') at_ = std::min(in_.find('}', at_), in_.size());
    ++at_;
    if (at_ < in_.size() && in_[at_] == '?') ++at_;
  }
  void cut() {
    if (!run_.empty()) runs_.push_back(std::move(run_));
    run_.clear();
  }

  std::string_view in_;
  size_t at_ = 0;
  std::string run_;
  std::vector<std::string> runs_;
};

// The longest word of `runs`; empty when none has `least` bytes.
std::string longest_word(const std::vector<std::string>& runs, size_t least) {
  std::string best;
  for (const std::string& run : runs) {
    for (size_t begin = 0; begin <= run.size();) {
      const size_t end = std::min(run.find(' ', begin), run.size());
      if (end - begin >= least && end - begin > best.size()) best = run.substr(begin, end - begin);
      begin = end + 1;
    }
  }
  return best;
}

// "?:percent|per cent" -> "percent|cent"; empty when an alternative has no word of its own.
std::string alternatives_of(std::string_view group) {
  if (group.substr(0, 2) == "?:") {
    group.remove_prefix(2);
  } else if (group.substr(0, 3) == "?P<") {
    group.remove_prefix(std::min(group.find('>') + 1, group.size()));
  } else if (group.substr(0, 1) == "?") {
    return {};
  }
  std::string out;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= group.size(); ++i) {
    if (i < group.size()) {
      if (group[i] == '\\') {
        ++i;
        continue;
      }
      if (group[i] == '[') {  // a class may hold any of the signs below
        i += group.substr(i, 3) == "[^]" ? 2 : group.substr(i, 2) == "[]" ? 1 : 0;
        while (i < group.size() && group[i] != ']') i += group[i] == '\\' ? 2 : 1;
        continue;
      }
      if (group[i] == '(') ++depth;
      if (group[i] == ')') --depth;
      if (group[i] != '|' || depth > 0) continue;
    }
    Scanner scanner(group.substr(begin, std::min(i, group.size()) - begin));
    const std::string word = longest_word(scanner.runs(), 2);
    if (word.empty()) return {};
    out += (begin ? "|" : "") + word;
    begin = i + 1;
  }
  return out;
}

}  // namespace

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

Requirements required_words(std::string_view pattern, std::string& why) {
  Requirements out;
  const re2::RE2 compiled(with_any_space(pattern), re2::RE2::Quiet);
  if (!compiled.ok()) {
    why = "RE2: " + compiled.error();
    return out;
  }
  Scanner scanner(pattern);
  const std::vector<std::string> runs = scanner.runs();
  if (scanner.alternatives) {
    why = "`|` outside of a group: write two patterns";
    return out;
  }
  std::vector<std::string> words;
  std::string longest_run;
  for (const std::string& run : runs) {
    if (run.size() > longest_run.size()) longest_run = run;
    for (size_t begin = 0; begin <= run.size();) {
      const size_t end = std::min(run.find(' ', begin), run.size());
      if (end - begin >= k_least_bytes) words.push_back(run.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  if (words.empty() && longest_run.size() >= k_least_bytes) words.push_back(longest_run);
  if (words.empty()) {
    why = "no literal of 3 or more bytes outside of groups and classes";
    return out;
  }
  std::stable_sort(words.begin(), words.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  words.erase(std::unique(words.begin(), words.end()), words.end());
  out.word = words[0];
  for (size_t i = 1; i < words.size(); ++i) out.also += (out.also.empty() ? "" : "\n") + words[i];
  for (std::string_view group : scanner.groups) {
    const std::string any = alternatives_of(group);
    if (!any.empty()) out.also += (out.also.empty() ? "" : "\n") + any;
  }
  return out;
}

std::string plain_text(std::string_view pattern) {
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

}  // namespace gen
