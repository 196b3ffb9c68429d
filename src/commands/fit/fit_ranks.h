// SPDX-License-Identifier: Apache-2.0
// `--world N` and `--ranks all` of `cufit fit`: how many ranks, and which of them are traced.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "commands/fit/fit_program.h"
#include "fit/answer/cards.h"
#include "fit/answer/ranks.h"

namespace cufit::commands {

struct RanksWanted {
  std::vector<uint64_t> worlds;  // as typed; the first answers; empty: the command's
  bool search = false;           // no more of them than tell the least number for each card
  bool all = false;              // ranks
};

// Error{usage} for values that are none.
Result<RanksWanted> ranks_wanted(const FitProgramRequest& program);

// What becomes of a trace at one number of ranks, and the cards whose least number is looked for.
struct WorldsAsked {
  std::function<Result<fit::WorldAnswer>(fit::Traces)> answer;
  std::vector<fit::Card> cards;
};

struct FitTraces;
// Those of other ranks and numbers of ranks than the first trace's are taken apart: `traces` is left
// with that one's.
Result<void> take_ranks_apart(std::vector<formats::TraceEvents> events, const WorldsAsked& asked,
                              FitTraces& out);

}  // namespace cufit::commands
