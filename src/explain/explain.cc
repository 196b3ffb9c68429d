// SPDX-License-Identifier: Apache-2.0
#include "explain/explain.h"

#include <algorithm>

#include "checks/doctor.h"
#include "explain/evidence.h"
#include "explain/intake.h"
#include "explain/join.h"
#include "explain/oom_clues.h"
#include "explain/pattern_search.h"
#include "explain/scores.h"
#include "host/text_facts.h"

namespace cufit::explain {

struct Explainer::State {
  explicit State(const knowledge::Knowledge& tables)
      : knowledge(tables), patterns(tables), intake(patterns.words()) {}
  const knowledge::Knowledge& knowledge;
  PatternSearch patterns;
  Intake intake;
  struct Text {
    std::string name;
    uint64_t first_line;
  };
  std::vector<Text> texts;  // by first line; empty = one of no name

  // From the numbering of all texts together to that of one.
  void place(EvidenceLine& line) const {
    if (line.line == 0) return;
    line.file = "stdin";
    for (size_t i = texts.size(); i-- > 0;) {
      if (texts[i].first_line > line.line) continue;
      line.file = texts[i].name;
      line.line -= texts[i].first_line - 1;
      return;
    }
  }
};

Explainer::Explainer(const knowledge::Knowledge& knowledge)
    : state_(std::make_unique<State>(knowledge)) {}
Explainer::~Explainer() = default;

void Explainer::begin(std::string name) {
  state_->texts.push_back({std::move(name), state_->intake.begin_text()});
}

void Explainer::add(std::string_view bytes) { state_->intake.add(bytes); }

Explanation Explainer::finish(const Options& options) {
  const std::vector<formats::TextLine> lines = state_->intake.finish();
  Explanation out;
  out.lines = state_->intake.lines();
  out.thinned = state_->intake.thinned();
  const std::vector<formats::OomMessage> messages = formats::parse_oom_messages(lines);
  out.oom = main_message(messages);
  std::vector<ComputedClue> computed;
  if (out.oom) computed = oom_clues(*out.oom);
  out.facts = host::facts_from_text(lines, options.name);
  if (options.beside) out.facts = join(std::move(out.facts), *options.beside);
  const std::vector<checks::Finding> findings =
      checks::examine(out.facts, state_->knowledge).findings;
  const TextEvidence evidence = read_evidence(state_->knowledge, state_->patterns, lines, computed);
  Ranking ranking = rank_causes(state_->knowledge, evidence, findings);
  out.causes = std::move(ranking.causes);
  out.ignored = std::move(ranking.ignored);
  out.files = std::max<size_t>(state_->texts.size(), 1);
  for (Cause& cause : out.causes) {
    for (EvidenceLine& line : cause.evidence) state_->place(line);
  }
  for (Ignored& ignored : out.ignored) state_->place(ignored.contradiction);
  return out;
}

}  // namespace cufit::explain
