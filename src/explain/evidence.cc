// SPDX-License-Identifier: Apache-2.0
#include "explain/evidence.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::explain {
namespace {

constexpr size_t k_lines_per_sign = 3;

using Groups = std::vector<TextSearch::Group>;

std::vector<EvidenceLine> as_evidence(const std::vector<Match>& matches) {
  std::vector<EvidenceLine> out;
  for (const Match& match : matches) out.push_back({match.line, match.text, {}});
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
  TextSearch search(patterns, lines);
  TextEvidence out;
  Groups groups;
  for (const knowledge::ClueRow& clue : knowledge.clues) groups.push_back(clue.patterns);
  std::vector<std::vector<Match>> matches = search.find(groups);
  for (size_t i = 0; i < knowledge.clues.size(); ++i) {
    if (!matches[i].empty()) out.clues.emplace(knowledge.clues[i].id, as_evidence(matches[i]));
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
  // Signs whose clues are there, as the second walk's groups.
  std::vector<std::pair<size_t, const knowledge::SignRow*>> signs;
  groups.clear();
  for (size_t f = 0; f < knowledge.findings.size(); ++f) {
    for (const knowledge::SignRow& sign : knowledge.findings[f].signs) {
      const bool all = std::all_of(sign.with.begin(), sign.with.end(),
                                   [&](std::string_view clue) { return holds(out, clue); });
      if (!all) continue;
      signs.emplace_back(f, &sign);
      groups.push_back(sign.any);
    }
  }
  matches = search.find(groups);
  out.signs.resize(knowledge.findings.size());
  for (size_t i = 0; i < signs.size(); ++i) {
    const auto [f, row] = signs[i];
    const knowledge::SignRow& sign = *row;
    SignHit hit{row, as_evidence(matches[i])};
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
  return out;
}

}  // namespace cufit::explain
