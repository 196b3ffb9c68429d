// SPDX-License-Identifier: Apache-2.0
#include "explain/vocabulary.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace cufit::explain {
namespace {

constexpr size_t k_least_word = 2, k_least_part = 3, k_longest_word = 40;
constexpr std::string_view k_any_clue = "@";  // the word for clues that are no words

bool is_sign(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}
bool is_joint(char c) { return c == '.' || c == '_'; }

void put(std::string_view word, size_t least, std::set<std::string>& out) {
  const bool has_letter =
      std::any_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (word.size() >= least && word.size() <= k_longest_word && has_letter) out.emplace(word);
}

void put_run(std::string_view run, std::set<std::string>& out) {
  while (!run.empty() && ((run[0] >= '0' && run[0] <= '9') || run[0] == '.')) run.remove_prefix(1);
  while (!run.empty() && is_joint(run.front())) run.remove_prefix(1);
  while (!run.empty() && is_joint(run.back())) run.remove_suffix(1);
  put(run, k_least_word, out);
  for (size_t begin = 0; begin <= run.size();) {
    size_t end = begin;
    while (end < run.size() && !is_joint(run[end])) ++end;
    put(run.substr(begin, end - begin), k_least_part, out);
    begin = end + 1;
  }
}

// Addresses and the numbers of an allocator's message: the same in all reports of their kind.
void blank_out(std::string& text) {
  for (std::string_view scheme : {"http://", "https://"}) {
    for (size_t at = text.find(scheme); at != text.npos; at = text.find(scheme, at)) {
      while (at < text.size() && static_cast<unsigned char>(text[at]) > ' ') text[at++] = ' ';
    }
  }
  constexpr std::string_view k_message = "tried to allocate";
  for (size_t at = text.find(k_message); at != text.npos; at = text.find(k_message, at)) {
    while (at < text.size() && text[at] != '\n') text[at++] = ' ';
  }
}

const knowledge::VocabularyWord* find(const knowledge::Knowledge& knowledge,
                                      std::string_view word) {
  const auto words = knowledge.vocabulary_words;
  const auto row =
      std::lower_bound(words.begin(), words.end(), word,
                       [&](const knowledge::VocabularyWord& one, std::string_view key) {
                         return knowledge.text(one.word) < key;
                       });
  return row != words.end() && knowledge.text(row->word) == word ? &*row : nullptr;
}

std::vector<const knowledge::VocabularyWord*> known_words(std::span<const formats::TextLine> lines,
                                                          const knowledge::Knowledge& knowledge) {
  std::set<std::string> words;
  for (const formats::TextLine& line : lines) words.merge(vocabulary_words(line.text));
  std::vector<const knowledge::VocabularyWord*> out;
  for (const std::string& word : words) {
    if (const knowledge::VocabularyWord* row = find(knowledge, word)) out.push_back(row);
  }
  return out;
}

using Words = std::vector<const knowledge::VocabularyWord*>;

bool asks_for(const knowledge::FindingTexts* finding, std::string_view clue) {
  return finding &&
         std::any_of(finding->signs.begin(), finding->signs.end(), [&](const auto& sign) {
           return std::find(sign.with.begin(), sign.with.end(), clue) != sign.with.end();
         });
}

// A clue that only chooses a step says nothing of the cause.
bool is_asked_for(const knowledge::Knowledge& knowledge, std::string_view clue) {
  return std::any_of(knowledge.findings.begin(), knowledge.findings.end(),
                     [&](const auto& finding) { return asks_for(&finding, clue); });
}

// What the words say, all rarities scaled to `length`; `unknown`: clues that are no words.
void add(const Words& words, std::span<const std::string_view> unknown, double length,
         const knowledge::Knowledge& knowledge, std::vector<double>& odds) {
  const knowledge::VocabularyWord* any_clue = find(knowledge, k_any_clue);
  if (!any_clue) unknown = {};
  double square = 0;
  for (const knowledge::VocabularyWord* word : words)
    square += static_cast<double>(word->rarity) * word->rarity;
  if (any_clue) square += static_cast<double>(unknown.size()) * any_clue->rarity * any_clue->rarity;
  if (square == 0) return;
  const double scale = length / (std::sqrt(square) * knowledge.weight_scale);
  const auto weights = [&](const knowledge::VocabularyWord& word) {
    return knowledge.vocabulary_weights.subspan(word.begin, word.count);
  };
  for (const knowledge::VocabularyWord* word : words) {
    for (const knowledge::VocabularyWeight& weight : weights(*word))
      odds[weight.cause] += weight.weight * word->rarity * scale;
  }
  for (std::string_view clue : unknown) {
    for (const knowledge::VocabularyWeight& weight : weights(*any_clue)) {
      if (asks_for(knowledge.find_texts(knowledge.vocabulary_causes[weight.cause].id), clue))
        odds[weight.cause] += weight.weight * any_clue->rarity * scale;
    }
  }
}

double yes(double odds) { return 1.0 / (1.0 + std::exp(-odds)); }

// Questions of yes and no by themselves; causes against those of their kind.
Votes probabilities(const std::vector<double>& odds, const knowledge::Knowledge& knowledge) {
  const auto causes = knowledge.vocabulary_causes;
  Votes out;
  double memory = -1;
  for (size_t i = 0; i < odds.size(); ++i) {
    if (causes[i].id == "none") out.needs_none = yes(odds[i]);
    if (causes[i].id == "memory") memory = yes(odds[i]);
  }
  for (const bool kind : {false, true}) {
    const size_t begin = out.causes.size();
    double most = -1e300, sum = 0;
    const auto is_one = [&](size_t i) {
      return causes[i].memory == kind && causes[i].id != "none" && causes[i].id != "memory";
    };
    for (size_t i = 0; i < odds.size(); ++i) {
      if (is_one(i)) most = std::max(most, odds[i]);
    }
    for (size_t i = 0; i < odds.size(); ++i) {
      if (!is_one(i)) continue;
      out.causes.push_back({causes[i].id, 0, kind, 1.0, std::exp(odds[i] - most)});
      sum += out.causes.back().of_kind;
    }
    const double share = memory < 0 ? 1.0 : kind ? memory : 1.0 - memory;
    for (size_t i = begin; i < out.causes.size(); ++i) {
      out.causes[i].of_kind /= sum;
      out.causes[i].kind = share;
      out.causes[i].probability = out.causes[i].of_kind * share;
    }
  }
  std::stable_sort(out.causes.begin(), out.causes.end(), [](const WordVote& a, const WordVote& b) {
    return a.probability > b.probability;
  });
  return out;
}

}  // namespace

std::set<std::string> vocabulary_words(std::string_view text) {
  std::set<std::string> out;
  std::string lower_text = lower(text);
  blank_out(lower_text);
  for (size_t at = 0; at < lower_text.size();) {
    if (is_sign(lower_text[at])) {
      size_t end = at;
      while (end < lower_text.size() && is_sign(lower_text[end])) ++end;
      put_run(std::string_view(lower_text).substr(at, end - at), out);
      at = end;
      continue;
    }
    // U+4E00 to U+9FFF: three bytes from E4 B8 80 to E9 BF BF.
    const auto lead = static_cast<unsigned char>(lower_text[at]);
    if (lead >= 0xE4 && lead <= 0xE9 && at + 3 <= lower_text.size() &&
        lower_text.compare(at, 3, "\xE4\xB8\x80") >= 0) {
      out.insert(lower_text.substr(at, 3));
      at += 3;
      continue;
    }
    ++at;
  }
  return out;
}

Votes vote(std::span<const formats::TextLine> lines, std::span<const std::string_view> clues,
           const knowledge::Knowledge& knowledge) {
  std::vector<double> odds;
  for (const knowledge::VocabularyCause& cause : knowledge.vocabulary_causes)
    odds.push_back(cause.bias);
  const auto words = known_words(lines, knowledge);
  if (words.empty()) return {};
  add(words, {}, 1.0, knowledge, odds);
  Words known;
  std::vector<std::string_view> unknown;
  for (std::string_view clue : clues) {
    if (const knowledge::VocabularyWord* row = find(knowledge, "@" + std::string(clue)))
      known.push_back(row);
    else if (is_asked_for(knowledge, clue))
      unknown.push_back(clue);
  }
  add(known, unknown, knowledge.clue_length, knowledge, odds);
  return probabilities(odds, knowledge);
}

TellingLine telling_line(std::span<const formats::TextLine> lines,
                         const knowledge::Knowledge& knowledge, std::string_view cause) {
  TellingLine out;
  double most = 0;
  for (const formats::TextLine& line : lines) {
    double sum = 0;
    for (const knowledge::VocabularyWord* word : known_words({&line, 1}, knowledge)) {
      for (const knowledge::VocabularyWeight& weight :
           knowledge.vocabulary_weights.subspan(word->begin, word->count)) {
        if (knowledge.vocabulary_causes[weight.cause].id == cause)
          sum += static_cast<double>(weight.weight) * word->rarity;
      }
    }
    if (sum <= most) continue;
    most = sum;
    out = {line.number, line.text};
  }
  return out;
}

}  // namespace cufit::explain
