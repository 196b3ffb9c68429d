// SPDX-License-Identifier: Apache-2.0
// A question of `cufit fit` and all that is said of it, as numbers and ids. traced_answer.h gives
// the answer from traces, recorded_answer.h from real recordings. All sizes in bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fit/answer/cards.h"
#include "fit/answer/plans_answer.h"
#include "fit/answer/ranks.h"
#include "fit/answer/traced_programs.h"
#include "fit/answer/warning.h"

namespace cufit::fit {

struct Question {
  std::vector<Card> cards;
  Card traced_card;                     // cards.h, traced_card()
  std::optional<uint64_t> batch;        // nullopt: the program's own
  std::optional<std::string> settings;  // of the allocator; nullopt: those of the program
  bool plans = false;
  std::optional<MeasuredLinks> links;  // for plans; nullopt: the rates of the tables
};

struct Recording {
  std::string file;
  uint64_t batch = 0;
  uint32_t steps = 0;                              // that ended
  uint64_t peak_allocated = 0, peak_reserved = 0;  // recorded
};
// Where the answer comes from real recordings instead of traces.
struct RecordedFigures {
  std::vector<Recording> recordings;  // by batch
  uint64_t lowest_reserved = 0;       // at the batch size of the answer
  uint64_t replayed_reserved = 0;     // at the last recording's: what the replay of it gives
  size_t storages = 0, proved = 0;    // whose size at other batch sizes is proved
};

// Of a program that is not distributed: one rank.
struct Distributed {
  uint64_t world = 1;
  uint64_t rank = 0;              // whose the answer is: the one that takes most of those traced
  std::vector<RankAnswer> ranks;  // ascending; those that were traced
  std::optional<MoreOf> more;     // of which it has more than `least`
  uint64_t least = 0;             // the rank that takes least
  std::string differ;             // why ranks differ, in the trace's words; empty: it does not say
  std::vector<WorldAnswer> worlds;  // ascending; empty: not asked for
};

struct Answer {
  TracedPrograms programs;
  uint64_t batch = 0;                  // 0: not known
  std::optional<uint64_t> unanswered;  // the batch size that was asked for: `batch` is another
  Setup setup;                         // on `card`, without a bound
  Prediction prediction;               // of it
  Card card;                           // the question's traced_card
  std::string settings;                // in PyTorch's form; empty: default
  std::vector<CardAnswer> cards;
  std::vector<CurvePoint> curve;
  std::vector<Warning> warnings;
  std::optional<RecordedFigures> recorded;
  Distributed distributed;
  std::optional<PlansAnswer> plans;  // nullopt: not asked for

  const StepProgram& traced() const { return programs.many; }
  // Every card that was asked for by name or size fits.
  bool fits() const {
    return std::all_of(cards.begin(), cards.end(),
                       [](const CardAnswer& one) { return !one.asked || one.fits; });
  }
};

}  // namespace cufit::fit
