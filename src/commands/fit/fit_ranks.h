// SPDX-License-Identifier: Apache-2.0
// `--world N` and `--ranks all` of `cufit fit`: how many ranks, and which of them are traced.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "commands/fit/fit_program.h"
#include "fit/answer/cards.h"
#include "fit/answer/ranks.h"
#include "fit/strategy.h"

namespace cufit::commands {

// Of which batch size one more trace would tell. Null: of none.
using NextBatch = std::function<Result<std::optional<uint64_t>>(fit::Traces)>;

struct RanksWanted {
  std::vector<uint64_t> worlds;  // as typed; the first answers; empty: the command's
  bool search = false;           // no more of them than tell the least number for each card
  uint64_t own = 0;              // with `search` the number that answers; 0: the command's
  bool all = false;              // ranks
};

// `option`: its name in an error. Error{usage} for values that are none.
Result<RanksWanted> ranks_wanted(const FitProgramRequest& program, const char* option = "world");
// The same of a model that is dealt out: `auto` answers for the GPUs of a usual node, and one number
// with `all_cards` is searched around for the least number of each. Error{usage}, too, for numbers
// that are no multiples of the strategy's groups.
Result<RanksWanted> ranks_of_strategy(RanksWanted wanted, const fit::Strategy& strategy,
                                      bool all_cards);

// What becomes of a trace at one number of ranks, and the cards whose least number is looked for.
struct WorldsAsked {
  std::function<Result<fit::WorldAnswer>(fit::Traces)> answer;
  std::vector<fit::Card> cards;
  NextBatch next_batch;  // of one number of ranks
  NextBatch only_batch;  // the only one at which a variant tells something
};

struct FitTraces;
// Those of other ranks and numbers of ranks than the first trace's are taken apart: `traces` is left
// with that one's.
Result<void> take_ranks_apart(std::vector<formats::TraceEvents> events, const WorldsAsked& asked,
                              FitTraces& out);

}  // namespace cufit::commands
