// SPDX-License-Identifier: Apache-2.0
#include "fit/plans.h"

#include <algorithm>
#include <set>
#include <thread>

#include "base/parallel.h"
#include "fit/search.h"

namespace cufit::fit {
namespace {

// What a plan of more changes has to gain, in memory or time, to be shown beside one of fewer.
constexpr double k_worth = 0.98;
constexpr uint64_t k_most_accumulation = 256;

// Into how many micro-batches the samples can be cut.
std::vector<uint64_t> accumulations(uint64_t samples, uint64_t own) {
  std::set<uint64_t> out = {own};
  for (uint64_t count = 1; count <= std::min(samples, k_most_accumulation); count *= 2)
    if (samples % count == 0) out.insert(count);
  // A program that accumulates by itself was not traced without it.
  if (own > 1) out.erase(1);
  return {out.begin(), out.end()};
}

const StepProgram* program_for(const PlanProgram& program, uint64_t accumulation, uint64_t own) {
  if (accumulation == 1 || accumulation == own) return &program.steps;
  return program.accumulating ? &*program.accumulating : nullptr;
}

double time_of(const PlanProgram& program, TrainingPlan& plan, const PlanQuestion& question) {
  const std::optional<StepTime> time = step_time(program.steps, plan.micro_batch, question.speed);
  if (!time) return 0;
  const StepTraffic traffic =
      step_traffic(program.steps, plan.micro_batch, program.dealing, question.links);
  plan.sent = traffic.bytes(plan.accumulation);
  return step_seconds(*time, traffic, plan.accumulation);
}

// What ranks that work on the same samples take of them in a step.
uint64_t samples_of(const PlanProgram& program, uint64_t samples) {
  return samples * (program.dealing.world / program.dealing.batches());
}

bool dominates(const TrainingPlan& a, const TrainingPlan& b) {
  if (a.peak_reserved_upper > b.peak_reserved_upper || a.relative_time > b.relative_time)
    return false;
  const auto worth = [](double less, double more) { return less < more * k_worth; };
  const bool better = worth(static_cast<double>(a.peak_reserved_upper),
                            static_cast<double>(b.peak_reserved_upper)) ||
                      worth(a.relative_time, b.relative_time);
  return better || a.changes < b.changes;
}

// Of two plans of which the greater change gains next to nothing, the smaller one is kept.
bool makes_needless(const TrainingPlan& a, const TrainingPlan& b) {
  return a.changes < b.changes &&
         static_cast<double>(a.peak_reserved_upper) * k_worth <=
             static_cast<double>(b.peak_reserved_upper) &&
         a.relative_time * k_worth <= b.relative_time;
}

void mark_frontier(std::vector<TrainingPlan>& plans) {
  for (TrainingPlan& plan : plans)
    plan.frontier = std::none_of(plans.begin(), plans.end(), [&](const TrainingPlan& other) {
      return &other != &plan && (dominates(other, plan) || makes_needless(other, plan));
    });
}

// All plans with their peaks, in no order.
std::vector<TrainingPlan> candidates(std::span<const PlanProgram> programs,
                                     const PlanQuestion& question, uint64_t samples) {
  struct Cell {
    size_t program;
    uint64_t accumulation;
    bool expandable;
  };
  std::vector<Cell> cells;
  std::vector<Plan> asked;
  for (size_t i = 0; i < programs.size(); ++i) {
    const uint64_t own = samples_of(programs[i], samples);
    for (const uint64_t count : accumulations(own, question.accumulation)) {
      const StepProgram* program = program_for(programs[i], count, question.accumulation);
      if (program == nullptr) continue;
      for (const bool expandable : {false, true}) {
        if (expandable && question.setup.settings.expandable_segments) continue;
        Plan plan{program, question.setup, {own / count}};
        if (expandable) plan.setup.settings.expandable_segments = true;
        asked.push_back(std::move(plan));
        cells.push_back({i, count, expandable});
      }
    }
  }
  const std::vector<std::vector<CurvePoint>> answers = curves(asked);
  std::vector<TrainingPlan> out;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (answers[i].empty()) continue;  // the traces do not answer for this micro-batch
    const CurvePoint& point = answers[i].front();
    TrainingPlan plan;
    plan.program = cells[i].program;
    plan.micro_batch = point.batch;
    plan.accumulation = cells[i].accumulation;
    plan.expandable_segments = cells[i].expandable;
    plan.peak_allocated = point.peak_allocated;
    plan.peak_reserved = point.peak_reserved;
    plan.peak_reserved_upper = point.peak_reserved_upper;
    plan.changes = programs[plan.program].switches.size() + (plan.expandable_segments ? 1 : 0) +
                   (plan.accumulation != question.accumulation ? 1 : 0);
    out.push_back(plan);
  }
  return out;
}

PlanOnCard on_card(std::span<const PlanProgram> programs, const PlanQuestion& question,
                   const TrainingPlan& plan, const PlanCard& card) {
  PlanOnCard out;
  const uint64_t more = programs[plan.program].more_outside;
  if (card.setup.capacity <= more || plan.peak_allocated > card.setup.capacity - more) return out;
  Setup setup = card.setup;
  setup.capacity -= more;
  setup.settings = question.setup.settings;
  if (plan.expandable_segments) setup.settings.expandable_segments = true;
  const StepProgram* program =
      program_for(programs[plan.program], plan.accumulation, question.accumulation);
  const Result<Prediction> got = predict(*program, plan.micro_batch, setup);
  if (!got) return out;
  out.fits = got->fits();
  out.retries = got->alloc_retries;
  return out;
}

}  // namespace

std::vector<size_t> Plans::shown() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < plans.size(); ++i) {
    const bool chosen =
        std::find(cheapest.begin(), cheapest.end(), std::optional(i)) != cheapest.end();
    if (i == as_it_is || plans[i].frontier || chosen) out.push_back(i);
  }
  return out;
}

Plans plans_of(std::span<const PlanProgram> programs, const PlanQuestion& question,
               std::span<const PlanCard> cards) {
  Plans out;
  out.samples = question.batch * question.accumulation;
  out.plans = candidates(programs, question, out.samples);
  const auto is_own = [&](const TrainingPlan& plan) { return plan.changes == 0; };
  const auto own = std::find_if(out.plans.begin(), out.plans.end(), is_own);
  if (own == out.plans.end()) return {};
  const double own_time = time_of(programs[0], *own, question);
  for (TrainingPlan& plan : out.plans) {
    const double time = time_of(programs[plan.program], plan, question);
    plan.relative_time = own_time > 0 ? time / own_time : 0;
  }
  std::sort(out.plans.begin(), out.plans.end(), [](const TrainingPlan& a, const TrainingPlan& b) {
    if (a.relative_time != b.relative_time) return a.relative_time < b.relative_time;
    if (a.peak_reserved_upper != b.peak_reserved_upper)
      return a.peak_reserved_upper < b.peak_reserved_upper;
    return a.changes < b.changes;
  });
  mark_frontier(out.plans);
  out.as_it_is = static_cast<size_t>(std::find_if(out.plans.begin(), out.plans.end(), is_own) -
                                     out.plans.begin());
  out.cheapest.resize(cards.size());
  in_parallel(cards.size(), cards.size(), [&](size_t card) {
    // Of plans that take as long, the one of fewer changes.
    std::vector<size_t> order(out.plans.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      if (out.plans[a].relative_time != out.plans[b].relative_time)
        return out.plans[a].relative_time < out.plans[b].relative_time;
      return out.plans[a].changes < out.plans[b].changes;
    });
    for (const size_t plan : order) {
      const PlanOnCard got = on_card(programs, question, out.plans[plan], cards[card]);
      if (!got.fits || (got.retries > 0 && out.cheapest[card])) continue;
      out.cheapest[card] = plan;
      if (got.retries == 0) break;  // else one that needs no cached memory back, if there is any
    }
  });
  for (const size_t plan : out.shown())
    for (size_t card = 0; card < cards.size(); ++card) {
      out.on_cards.push_back(on_card(programs, question, out.plans[plan], cards[card]));
      out.on_cards.back().plan = plan;
      out.on_cards.back().card = card;
    }
  return out;
}

}  // namespace cufit::fit
