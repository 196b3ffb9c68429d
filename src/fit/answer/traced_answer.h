// SPDX-License-Identifier: Apache-2.0
// The answer from traces of a program, and from a real run beside them.
#pragma once

#include "fit/answer/answer.h"
#include "fit/answer/calibration.h"
#include "fit/answer/traces.h"

namespace cufit::fit {

class TracedAnswer {
 public:
  // The figures without a bound. Error{malformed} where the traces do not say of which torch,
  // Error{usage} for settings that this torch does not know, and as align() and predict().
  // `traces`: plain ones there are; keep_micro_batches_apart() is done.
  static Result<TracedAnswer> begin(Traces traces, Question question,
                                    const knowledge::Knowledge& knowledge);

  // Corrects them, and what follows, by a real run of the program; a warning says so, or why not.
  Result<void> calibrate(const MeasuredRun& run);

  const Prediction& prediction() const { return out_.prediction; }
  uint64_t batch() const { return out_.batch; }  // 0: not known

  // Of which a trace more would tell where the traces answer for their own batch sizes alone: the
  // size that was asked for, then what finds the largest for the first card that was asked for.
  std::optional<uint64_t> batch_worth_tracing() const;
  // Where nothing is known of other batch sizes: the one of which plans are made.
  std::optional<uint64_t> only_batch_of_plans() const;

  // Each card, the curve and the plans.
  Answer finish() &&;

 private:
  TracedAnswer(Traces traces, Question question, const knowledge::Knowledge& knowledge)
      : traces_(std::move(traces)), question_(std::move(question)), knowledge_(&knowledge) {}
  Result<void> predict_traced();
  void answer_card(CardAnswer& card) const;
  std::vector<uint64_t> batches_of_curve() const;
  void add_plans();

  Traces traces_;
  Question question_;
  const knowledge::Knowledge* knowledge_;
  Setup setup_;              // of no card, without a bound
  uint64_t batch_ = 0;       // that is answered
  Calibration calibration_;  // changes nothing without a run
  Answer out_;
};

}  // namespace cufit::fit
