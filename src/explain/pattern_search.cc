// SPDX-License-Identifier: Apache-2.0
#include "explain/pattern_search.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <unordered_map>

#include "base/format.h"
#include "base/parallel.h"
#include "explain/provenance.h"
#include "explain/text_window.h"

namespace cufit::explain {
namespace {

constexpr uint32_t k_windows_per_pattern = 400;
constexpr size_t k_shown_bytes = 240;
constexpr size_t k_column_step = 1024;  // how far into an overlong line one window serves
constexpr size_t k_most_threads = 4;
constexpr size_t k_worth_a_thread = 2048;  // bytes of text

// A pattern of ASCII alone is matched byte by byte: its program is a fraction of the size that
// UTF-8 classes take, and most of the time goes into compiling.
re2::RE2::Options options(bool ascii) {
  re2::RE2::Options out(re2::RE2::Quiet);
  out.set_max_mem(2 << 20);
  out.set_never_capture(true);
  if (ascii) out.set_encoding(re2::RE2::Options::EncodingLatin1);
  return out;
}

// The same for a text in lower case, which is compiled in half the time that any case takes.
std::string for_lower_case(std::string_view pattern) {
  std::string out(pattern);
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == '\\') {
      ++i;
      if (i < out.size() && (out[i] == 'p' || out[i] == 'P'))  // \p{Han}
        i = std::min(out.find('}', i), out.size());
    } else if (out.compare(i, 2, "(?") == 0) {  // (?P<name>
      i = std::min(out.find_first_of(":>)", i), out.size());
    } else if (out[i] >= 'A' && out[i] <= 'Z') {
      out[i] = static_cast<char>(out[i] - 'A' + 'a');
    }
  }
  return out;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

// The pattern with counted repetitions as endless ones, which matches wherever it does: "{0,60}"
// costs 60 copies of what is repeated. Empty where there is nothing to gain.
std::string without_counts(std::string_view pattern) {
  constexpr size_t k_worth = 8;
  std::string out;
  bool gains = false, in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      if (pattern[i + 1] == 'x' || pattern[i + 1] == 'p' || pattern[i + 1] == 'P') return {};
      out += c;
      out += pattern[++i];
      continue;
    }
    if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
      for (const char first : {'^', ']'}) {  // "[]...", "[^]...": no end yet
        if (i + 1 >= pattern.size() || pattern[i + 1] != first) continue;
        out += pattern[i];
        ++i;
      }
      out += pattern[i];
      continue;
    } else if (c == '{') {
      const size_t end = pattern.find('}', i);
      if (end == pattern.npos) return {};
      const std::string_view counts = pattern.substr(i + 1, end - i - 1);
      if (counts.find_first_not_of("0123456789,") != counts.npos || counts.empty()) return {};
      const size_t comma = counts.rfind(',');
      const std::string most(comma == counts.npos ? counts : counts.substr(comma + 1));
      if (!most.empty() && std::strtoul(most.c_str(), nullptr, 10) >= k_worth) {
        out += '*';
        gains = true;
        i = end;
        continue;
      }
    }
    out += c;
  }
  return gains ? out : std::string();
}

std::vector<std::string_view> words_of(const knowledge::Knowledge& knowledge) {
  std::vector<std::string_view> out;
  out.reserve(knowledge.words.size());
  for (const knowledge::WordRow& row : knowledge.words) out.push_back(knowledge.text(row.word));
  return out;
}

// The groups in up to `parts` shares of about as many patterns each. Groups with a pattern in
// common stay together, so that every share has its patterns for itself.
std::vector<std::vector<uint32_t>> shares(std::span<const TextSearch::Group> groups,
                                          size_t patterns, size_t parts) {
  std::vector<uint32_t> leader(groups.size()), first_of(patterns, UINT32_MAX);
  std::iota(leader.begin(), leader.end(), 0);
  const auto find = [&](uint32_t group) {
    while (leader[group] != group) group = leader[group] = leader[leader[group]];
    return group;
  };
  for (uint32_t g = 0; g < groups.size(); ++g) {
    for (const uint32_t number : groups[g]) {
      if (first_of[number] == UINT32_MAX) first_of[number] = g;
      leader[find(g)] = find(first_of[number]);
    }
  }
  std::vector<std::vector<uint32_t>> together(groups.size()), out(parts);
  for (uint32_t g = 0; g < groups.size(); ++g) together[find(g)].push_back(g);
  std::vector<size_t> load(parts);
  for (const std::vector<uint32_t>& set : together) {
    const size_t least =
        static_cast<size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    for (const uint32_t g : set) {
      load[least] += groups[g].size();
      out[least].push_back(g);
    }
  }
  return out;
}

}  // namespace

std::string shortened(std::string_view line, size_t at) {
  auto is_middle = [&](size_t i) {
    return i < line.size() && (static_cast<unsigned char>(line[i]) & 0xC0) == 0x80;
  };
  if (line.size() <= k_shown_bytes) return std::string(trim(line));
  size_t begin = at > k_shown_bytes / 4 ? at - k_shown_bytes / 4 : 0;
  size_t end = std::min(line.size(), begin + k_shown_bytes);
  while (is_middle(begin)) ++begin;
  while (is_middle(end)) --end;
  return (begin ? "..." : "") + std::string(trim(line.substr(begin, end - begin))) +
         (end < line.size() ? "..." : "");
}

PatternSearch::PatternSearch(const knowledge::Knowledge& knowledge)
    : knowledge_(knowledge), words_(words_of(knowledge)) {}

// One pattern, compiled when a text first holds all its literals.
class TextSearch::Pattern {
 public:
  // Where it matches in the window, which holds its word. `may_compile`: else a pattern that no text
  // needed so far is not looked at.
  std::optional<size_t> match(const knowledge::Knowledge& knowledge, uint32_t number,
                              std::string_view word, const Window& window, bool may_compile) {
    const knowledge::PatternRow& row = knowledge.patterns[number];
    if (row.plain.size != 0) {
      const size_t at = window.find_plain(knowledge.text(row.plain));
      return at == std::string::npos ? std::nullopt : std::optional<size_t>(at);
    }
    if (windows_ >= k_windows_per_pattern || (windows_ == 0 && !may_compile)) return std::nullopt;
    if (!runs_.known) runs_.read(knowledge.text(row.shape), word);
    if (!runs_.are_in(window) || !window.fits(knowledge.text(row.shape))) return std::nullopt;
    ++windows_;
    // Most patterns whose literals stand in the text do not match it: ask that first.
    const std::string_view pattern = knowledge.text(row.re);
    if (windows_ == 1) {
      const std::string cheap = without_counts(pattern);
      if (!cheap.empty()) cheap_ = compiled(cheap);
    }
    if (cheap_ && cheap_->ok() && !matches(*cheap_, window.text(), nullptr)) return std::nullopt;
    if (!re_) re_ = compiled(pattern);
    // Yes or no is much faster than where, and mostly the line of the word says where.
    if (!re_->ok() || !matches(*re_, window.text(), nullptr)) return std::nullopt;
    const std::string_view middle = window.middle();
    if (matches(*re_, middle, nullptr))
      return static_cast<size_t>(middle.data() - window.text().data());
    re2::StringPiece whole;
    if (!matches(*re_, window.text(), &whole)) return std::nullopt;
    return static_cast<size_t>(whole.data() - window.text().data());
  }

 private:
  static std::unique_ptr<re2::RE2> compiled(std::string_view pattern) {
    static const re2::RE2::Options utf8 = options(false), ascii = options(true);
    const std::string re = "(?m)" + for_lower_case(pattern);
    return std::make_unique<re2::RE2>(re, is_ascii(re) ? ascii : utf8);
  }
  static bool matches(const re2::RE2& re, std::string_view text, re2::StringPiece* whole) {
    return re.Match(re2::StringPiece(text.data(), text.size()), 0, text.size(),
                    re2::RE2::UNANCHORED, whole, whole ? 1 : 0);
  }

  std::unique_ptr<re2::RE2> cheap_, re_;  // cheap_ matches wherever re_ does
  uint32_t windows_ = 0;
  ShapeRuns runs_;
};

TextSearch::TextSearch(const PatternSearch& patterns, std::span<const formats::TextLine> lines)
    : patterns_(patterns), lines_(lines), states_(patterns.knowledge().patterns.size()) {
  std::unordered_map<std::string_view, int> seen;
  for (const formats::TextLine& line : lines) {
    begins_.push_back(all_.size());
    all_ += line.text;
    all_ += '\n';
    repeated_.push_back(++seen[line.text] > 2);
  }
  find_words();
  keep_windows();
}

TextSearch::~TextSearch() = default;

void TextSearch::find_words() {
  size_t line = 0;
  patterns_.words().each(all_, [&](uint32_t word, size_t at) -> size_t {
    while (line + 1 < begins_.size() && begins_[line + 1] <= at) ++line;
    if (repeated_[line]) return line + 1 < begins_.size() ? begins_[line + 1] : all_.size();
    hits_.push_back({word, static_cast<uint32_t>(line), at - begins_[line]});
    return 0;
  });
}

void TextSearch::keep_windows() {
  constexpr size_t k_kept_windows = 256, k_short_line = 1024;
  WindowLines made;
  for (const Hit& hit : hits_) {
    if (windows_.size() == k_kept_windows) return;
    if (lines_[hit.line].text.size() > k_short_line) continue;
    const auto [place, is_new] = windows_.try_emplace(hit.line);
    if (is_new) place->second.move_to(lines_, hit.line, 0, made);
  }
}

// One walk through the hits for some groups, those that `share` numbers; their matches go into
// `found`. No other walk of the same time may look for the same patterns.
class TextSearch::Pass {
 public:
  Pass(TextSearch& search, std::span<const Group> groups, std::span<const uint32_t> share,
       Matches& found)
      : search_(search),
        knowledge_(search.patterns_.knowledge()),
        share_(share),
        found_(found),
        first_group_(knowledge_.patterns.size() + 1),
        last_line_(knowledge_.patterns.size(), k_no_line) {
    for (uint32_t g : share) {
      for (uint32_t number : groups[g]) ++first_group_[number + 1];
    }
    for (size_t i = 1; i < first_group_.size(); ++i) first_group_[i] += first_group_[i - 1];
    groups_.resize(first_group_.back());
    std::vector<uint32_t> next(first_group_.begin(), first_group_.end() - 1);
    for (uint32_t g : share) {
      for (uint32_t number : groups[g]) groups_[next[number]++] = g;
    }
  }

  void walk() {
    for (const Hit& hit : search_.hits_) {
      line_ = hit.line;
      const knowledge::WordRow& row = knowledge_.words[hit.word];
      word_ = knowledge_.text(row.word);
      for (uint32_t number : knowledge_.word_patterns.subspan(row.begin, row.count))
        match(number, hit.column);
    }
    for (uint32_t g : share_) {
      std::stable_sort(found_[g].begin(), found_[g].end(),
                       [](const Match& a, const Match& b) { return a.line < b.line; });
    }
  }

 private:
  static constexpr uint32_t k_no_line = UINT32_MAX;

  std::span<const uint32_t> groups_of(uint32_t number) const {
    return std::span<const uint32_t>(groups_).subspan(
        first_group_[number], first_group_[number + 1] - first_group_[number]);
  }

  void match(uint32_t number, size_t column) {
    bool wanted = false, missed = false;
    for (uint32_t group : groups_of(number)) {
      wanted = wanted || found_[group].size() < k_matches_per_group;
      missed = missed || found_[group].empty();
    }
    if (!wanted || last_line_[number] == line_) return;
    if (window_of_ != line_ || column > window_at_ + k_column_step) use_window(column);
    const std::optional<size_t> found =
        search_.states_[number].match(knowledge_, number, word_, *window_, missed);
    if (!found) return;
    const auto [index, begin] = window_->line_at(*found);
    // The same match seen from the next line.
    if (last_line_[number] != k_no_line && index <= last_line_[number]) return;
    last_line_[number] = static_cast<uint32_t>(index);
    const formats::TextLine& line = search_.lines_[index];
    const size_t place = index == line_ ? column : *found - begin;
    const bool printed = is_program_output(line.text, place);
    for (uint32_t group : groups_of(number)) {
      std::vector<Match>& matches = found_[group];
      const bool known = std::any_of(matches.begin(), matches.end(),
                                     [&](const Match& one) { return one.line == line.number; });
      if (known || matches.size() >= k_matches_per_group) continue;
      matches.push_back({line.number, shortened(line.text, place), printed});
    }
  }

  void use_window(size_t column) {
    const auto kept = search_.windows_.find(line_);
    if (kept == search_.windows_.end())
      own_window_.move_to(search_.lines_, line_, column, window_lines_);
    window_ = kept == search_.windows_.end() ? &own_window_ : &kept->second;
    window_of_ = line_, window_at_ = column;
  }

  TextSearch& search_;
  const knowledge::Knowledge& knowledge_;
  std::span<const uint32_t> share_;
  Matches& found_;                              // by group
  std::vector<uint32_t> first_group_, groups_;  // groups of each pattern
  std::vector<uint32_t>
      last_line_;  // index of the last line with a match, by pattern: one per line
  size_t line_ = 0;
  std::string_view word_;  // of the hit
  const Window* window_ = nullptr;
  Window own_window_;  // where none is kept
  WindowLines window_lines_;
  size_t window_of_ = SIZE_MAX, window_at_ = 0;
};

std::vector<std::vector<Match>> TextSearch::find(std::span<const Group> groups) {
  Matches found(groups.size());
  const size_t threads = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, k_most_threads);
  const size_t parts = all_.size() < k_worth_a_thread ? 1 : threads;
  const std::vector<std::vector<uint32_t>> share =
      shares(groups, patterns_.knowledge().patterns.size(), parts);
  in_parallel(parts, parts, [&](size_t part) { Pass(*this, groups, share[part], found).walk(); });
  return found;
}

}  // namespace cufit::explain
