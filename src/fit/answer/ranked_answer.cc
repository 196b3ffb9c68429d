// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/ranked_answer.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace cufit::fit {
namespace {

struct BegunRank {
  RankAnswer said;
  TracedAnswer answer;
};

const RankAnswer& least_of(const std::vector<RankAnswer>& ranks) {
  return *std::min_element(
      ranks.begin(), ranks.end(),
      [](const RankAnswer& a, const RankAnswer& b) { return a.in_all() < b.in_all(); });
}

// Each rank, in order; of those that are like another, what that one takes.
std::vector<RankAnswer> all_ranks(const std::vector<BegunRank>& begun,
                                  const std::vector<RankTraces>& ranks) {
  std::vector<RankAnswer> out;
  for (const BegunRank& one : begun) out.push_back(one.said);
  for (const RankTraces& rank : ranks) {
    if (!rank.like) continue;
    const auto like = std::find_if(begun.begin(), begun.end(), [&](const BegunRank& one) {
      return one.said.rank == *rank.like;
    });
    if (like == begun.end()) continue;
    out.push_back(like->said);
    out.back().rank = rank.rank;
    out.back().like = rank.like;
  }
  std::sort(out.begin(), out.end(),
            [](const RankAnswer& a, const RankAnswer& b) { return a.rank < b.rank; });
  return out;
}

// A global batch is divided among the ranks, and kept traces may be of any batch size.
void warn_of_other_batches(const std::vector<WorldAnswer>& worlds, std::vector<Warning>& warnings) {
  std::string list;
  bool differ = false;
  for (const WorldAnswer& one : worlds) {
    if (one.batch == 0) return;
    differ = differ || one.batch != worlds.front().batch;
    list += format("{}{} x {}", list.empty() ? "" : ", ", one.world, one.batch);
  }
  if (differ) warnings.push_back({"worlds_of_other_batches", {{"list", list}}, ""});
}

}  // namespace

Result<Answer> ranked_answer(RankedTraces traces, const Question& question,
                             const knowledge::Knowledge& knowledge,
                             const std::optional<MeasuredRun>& run) {
  const uint64_t world = world_of(traces.first.plain[0]);
  const std::string differ(traces.first.plain[0].fact("ranks_differ"));
  std::vector<BegunRank> begun;
  const auto begin = [&](uint64_t rank, Traces of_rank) -> Result<void> {
    Question asked = question;
    asked.plans = question.plans && begun.empty();  // the first alone was traced for them
    CUFIT_TRY(answer, TracedAnswer::begin(std::move(of_rank), std::move(asked), knowledge));
    const RankAnswer said = rank_answer(rank, answer.prediction());
    begun.push_back({said, std::move(answer)});
    return {};
  };
  const uint64_t first = rank_of(traces.first.plain[0]);
  if (Result<void> done = begin(first, std::move(traces.first)); !done) return done.error();
  for (RankTraces& rank : traces.ranks)
    if (!rank.like && !rank.traces.plain.empty())
      if (Result<void> done = begin(rank.rank, std::move(rank.traces)); !done) return done.error();
  const auto most = std::max_element(
      begun.begin(), begun.end(),
      [](const BegunRank& a, const BegunRank& b) { return a.said.in_all() < b.said.in_all(); });
  std::vector<RankAnswer> ranks = all_ranks(begun, traces.ranks);
  const uint64_t least = least_of(ranks).like.value_or(least_of(ranks).rank);
  std::optional<MoreOf> more;
  for (const BegunRank& other : begun)
    if (other.said.rank == least && &other != &*most)
      more = more_of(most->answer.prediction(), other.answer.prediction());
  if (run)
    if (Result<void> done = most->answer.calibrate(*run); !done) return done.error();
  const uint64_t rank = most->said.rank;
  Answer out = std::move(most->answer).finish();
  if (question.plans && rank != first)
    out.warnings.push_back({"plans_of_smaller_rank",
                            {{"rank", std::to_string(rank)}, {"first", std::to_string(first)}},
                            ""});
  warn_of_other_batches(traces.worlds, out.warnings);
  out.distributed = {world, rank, std::move(ranks), more, least, differ, std::move(traces.worlds)};
  for (CardAnswer& card : out.cards) {
    const auto asked = std::find_if(question.cards.begin(), question.cards.end(),
                                    [&](const Card& one) { return one.name == card.name; });
    if (asked != question.cards.end())
      card.least_world = least_world(*asked, out.distributed.worlds);
  }
  return out;
}

Result<WorldAnswer> world_answer(Traces traces, const Question& question,
                                 const knowledge::Knowledge& knowledge) {
  const uint64_t world = world_of(traces.plain[0]), nccl = nccl_bytes(traces.plain[0], question.traced_card, knowledge);
  CUFIT_TRY(answer, TracedAnswer::begin(std::move(traces), question, knowledge));
  const Prediction& said = answer.prediction();
  return WorldAnswer{world,
                     said.peak_allocated,
                     said.peak_reserved,
                     said.peak_reserved_upper,
                     said.outside_allocator,
                     nccl,
                     answer.batch()};
}

}  // namespace cufit::fit
