// SPDX-License-Identifier: Apache-2.0
#include "explain/evidence.h"

#include "base/format.h"

namespace cufit::explain {
namespace {

constexpr size_t k_lines_per_sign = 3;

using Matches = std::vector<std::vector<Match>>;

std::vector<EvidenceLine> lines_of(const PatternSearch& patterns, const Matches& matches,
                                   size_t begin, size_t count) {
  std::vector<EvidenceLine> out;
  for (size_t i = begin; i < begin + count; ++i) {
    for (const Match& match : patterns.of(matches, i)) {
      if (out.size() >= k_lines_per_sign) return out;
      bool known = false;
      for (const EvidenceLine& line : out) known = known || line.line == match.line;
      if (!known) out.push_back({match.line, match.text, {}});
    }
  }
  return out;
}

bool holds(const TextEvidence& evidence, std::string_view clue) {
  if (clue.substr(0, 1) == "!") return !evidence.has(clue.substr(1));
  return evidence.has(clue);
}

}  // namespace

TextEvidence read_evidence(const knowledge::Knowledge& knowledge, const PatternSearch& patterns,
                           std::span<const formats::TextLine> lines,
                           std::span<const ComputedClue> computed) {
  const Matches matches = patterns.find(lines);
  TextEvidence out;
  for (size_t i = 0; i < knowledge.clues.size(); ++i) {
    const knowledge::ClueRow& clue = knowledge.clues[i];
    auto found = lines_of(patterns, matches, patterns.clue_begin(i), clue.patterns.size());
    if (!found.empty()) out.clues.emplace(clue.id, std::move(found));
  }
  for (const ComputedClue& clue : computed) {
    std::string text;
    for (const formats::TextLine& line : lines) {
      if (line.number == clue.line && text.empty()) text = shortened(line.text, 0);
    }
    for (const knowledge::ClueRow& row : knowledge.clues) {
      if (row.id == clue.id) out.clues[row.id].push_back({clue.line, text, clue.fact});
      // The numbers of an out-of-memory message are an out-of-memory failure.
      if (row.id == "oom" && !out.has("oom")) out.clues[row.id].push_back({clue.line, text, {}});
    }
  }
  out.signs.resize(knowledge.findings.size());
  for (size_t f = 0; f < knowledge.findings.size(); ++f) {
    const auto signs = knowledge.findings[f].signs;
    for (size_t s = 0; s < signs.size(); ++s) {
      const knowledge::SignRow& sign = signs[s];
      bool all = true;
      for (std::string_view clue : sign.with) all = all && holds(out, clue);
      if (!all) continue;
      SignHit hit{&sign, lines_of(patterns, matches, patterns.sign_begin(f, s), sign.any.size())};
      if (!sign.any.empty() && hit.lines.empty()) continue;
      for (std::string_view clue : sign.with) {
        if (clue.substr(0, 1) == "!" || hit.lines.size() >= k_lines_per_sign) continue;
        const EvidenceLine& line = out.clues[clue].front();
        bool known = false;
        for (EvidenceLine& other : hit.lines) {
          if (other.line != line.line) continue;
          known = true;
          if (other.fact.empty()) other.fact = line.fact;
        }
        if (!known) hit.lines.push_back(line);
      }
      out.signs[f].push_back(std::move(hit));
    }
  }
  return out;
}

}  // namespace cufit::explain
