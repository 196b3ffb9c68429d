// SPDX-License-Identifier: Apache-2.0
// What of a pattern can be searched for without a regular expression: see gen_tables.h. Groups and
// classes are skipped as a whole, so the word is in every match whatever they match.
#include <re2/re2.h>

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

 private:
  void step() {
    char c = in_[at_];
    if (c == '(') return skip(&Scanner::skip_group);
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
      const bool once = in_[at_] == '+';
      if (once) run_ += c;
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

void keep_longer(std::string& best, const std::string& candidate) {
  if (candidate.size() > best.size()) best = candidate;
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

std::string required_literal(std::string_view pattern, std::string& why) {
  const re2::RE2 compiled(with_any_space(pattern), re2::RE2::Quiet);
  if (!compiled.ok()) {
    why = "RE2: " + compiled.error();
    return {};
  }
  Scanner scanner(pattern);
  const std::vector<std::string> runs = scanner.runs();
  if (scanner.alternatives) {
    why = "`|` outside of a group: write two patterns";
    return {};
  }
  std::string word, run_with_blanks;
  for (const std::string& run : runs) {
    keep_longer(run_with_blanks, run);
    for (size_t begin = 0; begin <= run.size();) {
      const size_t end = std::min(run.find(' ', begin), run.size());
      keep_longer(word, run.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  if (word.size() < k_least_bytes) word = run_with_blanks;
  if (word.size() >= k_least_bytes) return word;
  why = "no literal of 3 or more bytes outside of groups and classes";
  return {};
}

}  // namespace gen
