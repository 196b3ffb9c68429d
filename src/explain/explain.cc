// SPDX-License-Identifier: Apache-2.0
#include "explain/explain.h"

#include "checks/doctor.h"
#include "explain/evidence.h"
#include "explain/intake.h"
#include "explain/oom_clues.h"
#include "explain/pattern_search.h"
#include "explain/scores.h"

namespace cufit::explain {

struct Explainer::State {
  explicit State(const knowledge::Knowledge& tables)
      : knowledge(tables), patterns(tables), intake(patterns.words()) {}
  const knowledge::Knowledge& knowledge;
  PatternSearch patterns;
  Intake intake;
};

Explainer::Explainer(const knowledge::Knowledge& knowledge)
    : state_(std::make_unique<State>(knowledge)) {}
Explainer::~Explainer() = default;

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
  if (options.beside) out.facts = *options.beside;
  const std::vector<checks::Finding> findings;
  const TextEvidence evidence = read_evidence(state_->knowledge, state_->patterns, lines, computed);
  Ranking ranking = rank_causes(state_->knowledge, evidence, findings);
  out.causes = std::move(ranking.causes);
  out.ignored = std::move(ranking.ignored);
  return out;
}

}  // namespace cufit::explain
