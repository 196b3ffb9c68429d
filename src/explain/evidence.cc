// SPDX-License-Identifier: Apache-2.0
#include "explain/evidence.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/format.h"
#include "explain/codes.h"
#include "explain/ring_text.h"

namespace cufit::explain {
namespace {

constexpr size_t k_lines_per_sign = 3;

using Groups = std::vector<TextSearch::Group>;

std::vector<EvidenceLine> as_evidence(const std::vector<Match>& matches) {
  std::vector<EvidenceLine> out;
  for (const Match& match : matches) out.push_back({match.line, match.text, {}});
  return out;
}

// The tables hold each blank of a pattern as white space.
bool is_ring_pattern(std::string_view re) { return starts_with(re, "cufit\\s+ring:"); }

class EvidenceReader {
 public:
  EvidenceReader(const knowledge::Knowledge& knowledge, const PatternSearch& patterns,
                 std::span<const formats::TextLine> lines)
      : knowledge_(knowledge),
        ring_(only_ring(lines)),
        lines_(without_ring(lines)),
        search_(patterns, lines_) {
    if (!ring_.empty()) ring_search_.emplace(patterns, ring_);
    for (const knowledge::ClueRow& clue : knowledge.clues) {
      if (clue.gate) gates_.insert(clue.id);
    }
  }

  TextEvidence read(const std::function<std::vector<ComputedClue>()>& computed) {
    find_clues();
    for (const ComputedClue& clue : computed()) add_computed(clue);
    match_signs();
    add_codes();
    out_.outcome = read_outcome(lines_);
    // What a black box calls refused is a trouble that is told, though in no sentence of the program.
    for (const formats::TextLine& line : ring_)
      out_.outcome.told = out_.outcome.told || contains(line.text, "refused it");
    return std::move(out_);
  }

 private:
  void find_clues() {
    Groups groups;
    for (const knowledge::ClueRow& clue : knowledge_.clues) groups.push_back(clue.patterns);
    const std::vector<std::vector<Match>> matches = search_.find(groups);
    for (size_t i = 0; i < knowledge_.clues.size(); ++i) {
      if (!matches[i].empty()) out_.clues.emplace(knowledge_.clues[i].id, as_evidence(matches[i]));
    }
  }

  void add_computed(const ComputedClue& clue) {
    const std::string text = shown(clue.line, 0);
    for (const knowledge::ClueRow& row : knowledge_.clues) {
      if (row.id == clue.id) out_.clues[row.id].push_back({clue.line, text, clue.fact});
      // The numbers of an out-of-memory message are an out-of-memory failure.
      if (row.id == "oom" && starts_with(clue.id, "oom_") && !out_.has("oom"))
        out_.clues[row.id].push_back({clue.line, text, {}});
    }
  }

  bool holds(std::string_view clue) const {
    if (clue.substr(0, 1) == "!") return !out_.has(clue.substr(1));
    return out_.has(clue);
  }

  void match_signs() {
    // Those whose clues are there, as the second walk's groups.
    std::vector<std::pair<size_t, const knowledge::SignRow*>> signs;
    Groups groups;
    for (size_t f = 0; f < knowledge_.findings.size(); ++f) {
      for (const knowledge::SignRow& sign : knowledge_.findings[f].signs) {
        if (!std::all_of(sign.with.begin(), sign.with.end(),
                         [&](std::string_view clue) { return holds(clue); }))
          continue;
        signs.emplace_back(f, &sign);
        groups.push_back(sign.any);
      }
    }
    std::vector<std::vector<Match>> matches = search_.find(groups);
    if (ring_search_) match_ring(groups, matches);
    out_.signs.resize(knowledge_.findings.size());
    for (size_t i = 0; i < signs.size(); ++i) {
      const auto& [f, sign] = signs[i];
      if (!sign->any.empty() && matches[i].empty()) continue;
      SignHit hit{sign, as_evidence(matches[i])};
      hit.printed =
          matches[i].empty() || std::any_of(matches[i].begin(), matches[i].end(),
                                            [](const Match& match) { return match.printed; });
      for (std::string_view clue : sign->with) add_clue(clue, hit.lines);
      out_.signs[f].push_back(std::move(hit));
    }
  }

  // The signs that are made for a black box: its lines are asked for no others.
  void match_ring(const Groups& groups, std::vector<std::vector<Match>>& matches) {
    Groups made;
    std::vector<size_t> places;
    for (size_t i = 0; i < groups.size(); ++i) {
      if (!std::any_of(groups[i].begin(), groups[i].end(), [&](uint32_t number) {
            return is_ring_pattern(knowledge_.text(knowledge_.patterns[number].re));
          }))
        continue;
      made.push_back(groups[i]);
      places.push_back(i);
    }
    std::vector<std::vector<Match>> found = ring_search_->find(made);
    for (size_t i = 0; i < found.size(); ++i)
      for (Match& match : found[i]) matches[places[i]].push_back(std::move(match));
  }

  // A clue's line proves the sign too, unless it only says what the text is about.
  void add_clue(std::string_view clue, std::vector<EvidenceLine>& lines) {
    if (clue.substr(0, 1) == "!" || lines.size() >= k_lines_per_sign) return;
    if (gates_.count(clue) && !lines.empty()) return;
    const EvidenceLine& line = out_.clues[clue].front();
    for (EvidenceLine& other : lines) {
      if (other.line != line.line) continue;
      if (other.fact.empty()) other.fact = line.fact;
      return;
    }
    lines.push_back(line);
  }

  // What a code means goes beside the lines that are evidence anyway; the table's usual cause is a
  // hint where no sign speaks for it.
  void add_codes() {
    static constexpr knowledge::SignRow k_code_sign = {{}, {}, 25, false};
    const std::vector<CodeHit> codes = find_codes(lines_, knowledge_);
    for (std::vector<SignHit>& signs : out_.signs) {
      for (SignHit& sign : signs) {
        for (EvidenceLine& line : sign.lines) {
          for (const CodeHit& code : codes) {
            if (code.line == line.line && line.fact.empty()) line.fact = code.fact;
          }
        }
      }
    }
    for (const CodeHit& code : codes) {
      for (size_t f = 0; f < knowledge_.findings.size(); ++f) {
        if (code.finding != knowledge_.findings[f].id || !out_.signs[f].empty()) continue;
        out_.signs[f].push_back(
            {&k_code_sign, {{code.line, shown(code.line, code.column), code.fact}}});
      }
    }
  }

  std::string shown(uint64_t number, size_t column) const {
    for (const formats::TextLine& line : lines_) {
      if (line.number == number) return shortened(line.text, column);
    }
    return {};
  }

  const knowledge::Knowledge& knowledge_;
  std::vector<formats::TextLine> ring_, lines_;
  TextSearch search_;
  std::optional<TextSearch> ring_search_;
  std::set<std::string_view> gates_;
  TextEvidence out_;
};

}  // namespace

TextEvidence read_evidence(const knowledge::Knowledge& knowledge, const PatternSearch& patterns,
                           std::span<const formats::TextLine> lines,
                           const std::function<std::vector<ComputedClue>()>& computed) {
  return EvidenceReader(knowledge, patterns, lines).read(computed);
}

}  // namespace cufit::explain
