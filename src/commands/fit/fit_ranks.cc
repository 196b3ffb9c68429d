// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_ranks.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/number.h"
#include "commands/fit/fit_tracing.h"
#include "host/python/sitecustomize_dir.h"

namespace cufit::commands {
namespace {

using formats::TraceEvents;

void keep_most(std::optional<fit::WorldAnswer>& most, const fit::WorldAnswer& one) {
  if (!most || one.in_all() > most->in_all()) most = one;
}

constexpr uint64_t k_usual_worlds[] = {1, 2, 4, 8, 16, 32, 64};
constexpr uint64_t k_usual_node = 8;

// A program as it stands, or another rank or number of ranks of it.
class RankTracing {
 public:
  RankTracing(const Context& context, TracingPlan plan, std::optional<uint64_t> batch,
              const WorldsAsked& asked)
      : context_(context), plan_(std::move(plan)), batch_(batch), asked_(asked) {
    plan_.keeps_world = plan_.ranks.worlds.size() > 1;
  }

  Result<FitTraces> run() {
    // For as long as the ranks are traced.
    CUFIT_TRY(folder, host::ScriptFolder::make("ranks", "", {"sent"}));
    plan_.run.sent = folder.path() + "/sent";
    TracingPlan first = plan_;
    if (!plan_.ranks.worlds.empty())
      first.run.world = plan_.ranks.search ? plan_.ranks.own : plan_.ranks.worlds.front();
    const std::optional<uint64_t> world = first.run.world;
    std::vector<uint64_t> others;
    first.after_first = [&](const TraceEvents& events) -> Result<bool> {
      if (Result<void> had = had_effect(events, world); !had) return had.error();
      others = fit::ranks_worth(events, plan_.ranks.all);
      firsts_.push_back({fit::rank_of(events), events});
      return true;
    };
    first.next_batch = [&](const fit::Traces& traces) -> Result<std::optional<uint64_t>> {
      if (!others.empty() || !asked_.next_batch) return std::optional<uint64_t>();
      return asked_.next_batch(traces);
    };
    first.only_batch = asked_.only_batch;
    CUFIT_TRY(out, trace_program(context_, first, batch_, interrupts_));
    // It was the only rank.
    if (out.failure && world == 1 && out.failure->next == "one_process")
      out.failure->next = "function";
    if (out.failure) return out;
    if (out.inferred) {
      plan_.argument = out.inferred->argument;
      plan_.command = out.inferred->command;
    }
    for (const uint64_t rank : others)
      if (Result<void> done = trace_rank(rank, out); !done) return done.error();
    if (plan_.ranks.worlds.size() > 1)
      if (Result<void> done = trace_worlds(out); !done) return done.error();
    return out;
  }

 private:
  // What was asked for has to be what was traced.
  Result<void> had_effect(const TraceEvents& events, const std::optional<uint64_t>& asked) const {
    const bool grouped = !events.fact("world_size").empty();
    const uint64_t world = fit::world_of(events);
    if (!grouped && plan_.ranks.all)
      return fail(Code::usage,
                  "`--ranks all` had no effect: the program makes no process group, so that each of "
                  "its processes takes the same");
    if (!asked || (!grouped && *asked == 1)) return {};
    if (!grouped)
      return fail(Code::usage, format("`--world {}` had no effect: the program makes no process "
                                      "group, so that it takes the same on every GPU",
                                      *asked == 0 ? "auto" : std::to_string(*asked)));
    if (world == *asked || *asked == 0) return {};
    return fail(Code::usage, format("`--world {}` had no effect: the program makes a group of {} "
                                    "by itself; give it its own option for that",
                                    *asked, world));
  }

  Result<void> trace_rank(uint64_t rank, FitTraces& out) {
    progress("rank", {{"rank", std::to_string(rank)},
                      {"world", std::to_string(fit::world_of(firsts_.front().events))}});
    TracingPlan other = plan_;
    other.plans = false;
    if (!plan_.ranks.worlds.empty()) other.run.world = fit::world_of(firsts_.front().events);
    other.run.rank.number = rank;
    fit::RankTraces one;
    one.rank = rank;
    other.after_first = [&](const TraceEvents& events) -> Result<bool> {
      for (const First& first : firsts_)
        if (fit::same_events(first.events, events)) one.like = first.rank;
      if (!one.like) firsts_.push_back({rank, events});
      return !one.like;
    };
    CUFIT_TRY(traced, trace_program(context_, other, batch_, interrupts_));
    if (traced.failure) {
      out.traces.warnings.push_back({"rank_failed",
                                     {{"rank", std::to_string(rank)}, {"detail", traced.failure->detail}},
                                     traced.failure->source});
      return {};
    }
    if (!one.like) one.traces = std::move(traced.traces);
    out.ranks.push_back(std::move(one));
    return {};
  }

  // One trace at each number of ranks that is asked, at the batch size of the answer.
  Result<void> trace_worlds(FitTraces& out) {
    std::vector<uint64_t> worlds = plan_.ranks.worlds;
    std::sort(worlds.begin(), worlds.end());
    const auto ask = [&](uint64_t world) -> Result<std::optional<fit::WorldAnswer>> {
      if (world == fit::world_of(firsts_.front().events)) return own_world(out);
      return trace_world(world, out);
    };
    CUFIT_TRY(found, fit::search_worlds(worlds, plan_.ranks.search, asked_.cards, ask));
    out.worlds = std::move(found);
    return {};
  }

  Result<std::optional<fit::WorldAnswer>> own_world(const FitTraces& out) {
    std::optional<fit::WorldAnswer> most;
    fit::Traces first = out.traces;
    CUFIT_TRY(of_first, asked_.answer(std::move(first)));
    keep_most(most, of_first);
    for (const fit::RankTraces& rank : out.ranks) {
      if (rank.like) continue;
      CUFIT_TRY(of_rank, asked_.answer(rank.traces));
      keep_most(most, of_rank);
    }
    return most;
  }

  Result<std::optional<fit::WorldAnswer>> trace_world(uint64_t world, FitTraces& out) {
    std::optional<fit::WorldAnswer> most;
    std::vector<host::TracedRank> ranks{{}};
    for (size_t i = 0; i < ranks.size(); ++i) {
      progress(world == 1 ? "world_one" : "world", {{"world", std::to_string(world)}});
      TracingPlan other = plan_;
      other.plans = false;
      other.run.variant.clear();
      other.run.world = world;
      other.run.rank = ranks[i];
      other.after_first = [&, i](const TraceEvents& events) -> Result<bool> {
        if (Result<void> had = had_effect(events, world); !had) return had.error();
        if (i == 0)
          for (const uint64_t rank : fit::ranks_worth(events, false)) ranks.push_back({rank, false});
        return false;
      };
      CUFIT_TRY(traced, trace_program(context_, other, batch_, interrupts_));
      if (traced.failure) {
        out.traces.warnings.push_back(
            {"world_failed",
             {{"world", std::to_string(world)}, {"detail", traced.failure->detail}},
             traced.failure->source});
        return std::optional<fit::WorldAnswer>();
      }
      CUFIT_TRY(answer, asked_.answer(std::move(traced.traces)));
      keep_most(most, answer);
    }
    return most;
  }

  void progress(const char* key, const std::map<std::string, std::string>& args) const {
    context_.output.print_error(context_.message(format("fit.progress.{}", key), args));
  }

  struct First {
    uint64_t rank = 0;
    TraceEvents events;
  };
  const Context& context_;
  TracingPlan plan_;
  std::optional<uint64_t> batch_;
  const WorldsAsked& asked_;
  host::Interrupts interrupts_;  // of all traces: a signal between two of them ends cufit, too
  std::vector<First> firsts_;  // of each rank that differs from those before it
};

Result<uint64_t> one_world(const std::string& text, const char* option) {
  const std::optional<uint64_t> world = parse_uint(text);
  if (!world || *world == 0 || *world > fit::k_most_ranks)
    return fail(Code::usage, format("`--{} {}`: a number of ranks from 1 to {}, up to {} of them "
                                    "with commas between, or `auto`",
                                    option, text, fit::k_most_ranks, fit::k_most_worlds));
  return *world;
}

}  // namespace

Result<RanksWanted> ranks_wanted(const FitProgramRequest& program, const char* option) {
  RanksWanted out;
  if (program.ranks && *program.ranks != "all")
    return fail(Code::usage, format("`--ranks {}`: `all`", *program.ranks));
  out.all = program.ranks.has_value();
  if (!program.world) return out;
  if (*program.world == "auto") {
    out.worlds.assign(std::begin(k_usual_worlds), std::end(k_usual_worlds));
    out.search = true;
    return out;
  }
  for (const std::string_view part : split(*program.world, ',')) {
    CUFIT_TRY(world, one_world(part.empty() ? *program.world : std::string(part), option));
    if (std::find(out.worlds.begin(), out.worlds.end(), world) == out.worlds.end())
      out.worlds.push_back(world);
  }
  if (out.worlds.size() > fit::k_most_worlds) return one_world(*program.world, option).error();
  return out;
}

Result<RanksWanted> ranks_of_strategy(RanksWanted wanted, const fit::Strategy& strategy,
                                      bool all_cards) {
  const uint64_t group = strategy.group();
  if (wanted.search) {
    wanted.own = (k_usual_node + group - 1) / group * group;
  } else if (wanted.worlds.size() == 1 && all_cards) {
    wanted.own = wanted.worlds.front();
    wanted.search = true;
    wanted.worlds.insert(wanted.worlds.end(), std::begin(k_usual_worlds), std::end(k_usual_worlds));
  }
  if (wanted.search) {
    // Those of whole groups: the group itself, and as many more as are usual.
    std::vector<uint64_t> whole = {wanted.own, group};
    for (const uint64_t world : wanted.worlds)
      if (world % group == 0) whole.push_back(world);
    std::sort(whole.begin(), whole.end());
    whole.erase(std::unique(whole.begin(), whole.end()), whole.end());
    wanted.worlds = std::move(whole);
  }
  for (const uint64_t world : wanted.worlds)
    if (world % group != 0)
      return fail(Code::usage, format("`--gpus {}`: `--strategy {}` needs a multiple of {}", world,
                                      strategy.asked, group));
  return wanted;
}

using Worlds = std::map<uint64_t, std::map<uint64_t, fit::Traces>>;

static fit::Warning first_world_answers(uint64_t first, const Worlds& others) {
  std::string list;
  bool plans = false;
  for (const auto& [world, ranks] : others) {
    list += format("{}{}", list.empty() ? "" : ", ", world);
    for (const auto& [rank, traces] : ranks) plans = plans || !traces.variants.empty();
  }
  return {plans ? "first_world_plans" : "first_world",
          {{"world", std::to_string(first)}, {"others", list}},
          ""};
}

Result<void> take_ranks_apart(std::vector<TraceEvents> events, const WorldsAsked& asked,
                              FitTraces& out) {
  const uint64_t world = fit::world_of(events.front()), first = fit::rank_of(events.front());
  std::map<uint64_t, fit::Traces> ranks;
  Worlds worlds;
  for (TraceEvents& one : events) {
    const uint64_t of_world = fit::world_of(one), rank = fit::rank_of(one);
    fit::Traces& to = of_world != world ? worlds[of_world][rank]
                      : rank == first   ? out.traces
                                        : ranks[rank];
    fit::add_trace(to, std::move(one));
  }
  std::vector<std::pair<uint64_t, const TraceEvents*>> known;
  if (!out.traces.plain.empty()) known.push_back({first, &out.traces.plain[0]});
  for (auto& [rank, traces] : ranks) {
    if (traces.plain.empty()) continue;
    out.ranks.push_back({rank, std::move(traces), std::nullopt});
  }
  for (fit::RankTraces& rank : out.ranks) {
    for (const auto& [number, of_number] : known)
      if (fit::same_events(*of_number, rank.traces.plain[0])) rank.like = number;
    if (!rank.like) known.push_back({rank.rank, &rank.traces.plain[0]});
  }
  if (!worlds.empty()) out.traces.warnings.push_back(first_world_answers(world, worlds));
  if (!asked.answer || worlds.empty()) return {};
  worlds[world][first] = out.traces;
  for (fit::RankTraces& rank : out.ranks)
    if (!rank.like) worlds[world][rank.rank] = rank.traces;
  for (auto& [number, of_ranks] : worlds) {
    std::optional<fit::WorldAnswer> most;
    for (auto& [rank, traces] : of_ranks) {
      if (traces.plain.empty()) continue;
      fit::keep_micro_batches_apart(traces, false);
      CUFIT_TRY(answer, asked.answer(std::move(traces)));
      keep_most(most, answer);
    }
    if (most) out.worlds.push_back(*most);
  }
  return {};
}

Result<FitTraces> trace_ranks(const Context& context, TracingPlan plan,
                              std::optional<uint64_t> batch, const WorldsAsked& asked) {
  return RankTracing(context, std::move(plan), batch, asked).run();
}

}  // namespace cufit::commands
