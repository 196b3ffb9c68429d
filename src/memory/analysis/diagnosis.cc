// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/diagnosis.h"

#include <algorithm>
#include <thread>

#include "memory/analysis/allocated_walk.h"
#include "memory/analysis/oom_moment.h"
#include "base/parallel.h"

namespace cufit::analysis {
namespace {

using memory::Snapshot;
using memory::VerifiedRecording;

constexpr size_t k_diagnosis_events_per_thread = 25'000;  // a thread costs more than a short replay
constexpr size_t k_ops_worth_a_thread = 2'000;
constexpr size_t k_processors_of_trials = 3;

Instant instant_at(const Snapshot& snapshot, const VerifiedRecording& verified,
                   const Observation& so_far, uint32_t event) {
  Instant instant;
  instant.moment = moment_at(verified, so_far.lifetimes, event);
  instant.step = so_far.steps.at(event);
  instant.by_category = footprint_at(so_far.lifetimes, so_far.categories, event);
  instant.by_frame = sites_at(snapshot, so_far.lifetimes, so_far.categories, event);
  return instant;
}

Limits given_limits(uint64_t given) {
  Limits limits;
  limits.at_least = limits.at_most = given;
  limits.given = true;
  return limits;
}

// As memory::RecordedLimit, which only is where the model failed too.
Limits recorded_limits(const VerifiedRecording& verified, const OomInstant& oom,
                       uint64_t peak_reserved) {
  Limits limits;
  if (verified.limit && oom.request.event == verified.verification.result.oom->event) {
    limits.at_least = verified.limit->at_least;
    limits.at_most = verified.limit->below - 1;
    limits.card_full = verified.limit->card_full;
    return limits;
  }
  const uint64_t reserved = oom.request.reserved;
  limits.at_least = std::max(reserved, peak_reserved);
  limits.at_most = std::max(limits.at_least, reserved + oom.request.tried - 1);
  if (oom.device_free && *oom.device_free < oom.request.tried) {
    limits.card_full = true;
    limits.at_least = limits.at_most = std::max(limits.at_least, reserved + *oom.device_free);
  }
  return limits;
}

bool is_caught(const VerifiedRecording& verified, uint64_t event) {
  return std::any_of(verified.program->ops.begin(), verified.program->ops.end(),
                     [&](const memory::Op& op) {
                       return op.kind == memory::OpKind::failed && op.event == event && op.caught;
                     });
}

// The first failure that nobody caught, else the first.
std::optional<memory::Op> recorded_failure(const VerifiedRecording& verified) {
  std::optional<memory::Op> found;
  for (const memory::Op& op : verified.program->ops)
    if (op.kind == memory::OpKind::failed && (!found || (found->caught && !op.caught))) found = op;
  return found;
}

memory::OutOfMemory as_recorded(const VerifiedRecording& verified, const Observation& so_far,
                                const memory::Op& op) {
  const std::vector<SegmentRange> segments = segment_ranges(verified.recording, *verified.program);
  const OomMoment moment = oom_moment_at(verified.recording, op.event, so_far.lifetimes, segments);
  memory::OutOfMemory out;
  out.event = op.event;
  out.requested = out.rounded = moment.rounded_bytes;
  out.tried = moment.segment_bytes;
  out.allocated = moment.allocated;
  out.reserved = moment.reserved;
  out.largest_free_in_pool = moment.usable.largest;
  out.largest_free = moment.free.largest;
  return out;
}

OomInstant oom_instant(const Snapshot& snapshot, const VerifiedRecording& verified,
                       const Observation& so_far, const memory::OutOfMemory& request,
                       std::optional<uint64_t> limit) {
  OomInstant out;
  out.request = request;
  out.served_by_model = !verified.verification.result.oom;
  const auto event = static_cast<uint32_t>(out.request.event);
  out.instant = instant_at(snapshot, verified, so_far, event);
  const memory::TraceEvent& row = snapshot.events[snapshot.traces[verified.device].first + event];
  out.place = place_of(snapshot, row.stack);
  if (row.action == memory::Action::oom && row.address != memory::k_absent)
    out.device_free = row.address;
  out.limits =
      limit ? given_limits(*limit) : recorded_limits(verified, out, so_far.peak_reserved_bytes);
  for (const memory::Op& op : verified.program->ops) {
    if (op.event == event && op.kind == memory::OpKind::failed) out.caught = op.caught;
    if (op.event > event && op.kind == memory::OpKind::malloc) ++out.requests_later;
  }
  out.limits.caught = out.caught;
  return out;
}

// The most that ever waited for other streams at once.
uint64_t highest_pending(const Lifetimes& lifetimes) {
  // What completes with the next event never waited.
  const auto waits = [&](const Lifetime& row) {
    return row.free_requested < lifetimes.events && row.free_completed != row.free_requested + 1;
  };
  if (std::none_of(lifetimes.rows.begin(), lifetimes.rows.end(), waits)) return 0;
  std::vector<uint64_t> change(lifetimes.events + 1);  // modulo 2^64
  for (const Lifetime& row : lifetimes.rows) {
    if (!waits(row)) continue;
    change[row.free_requested] += row.block_bytes;
    change[std::min(row.free_completed, lifetimes.events)] -= row.block_bytes;
  }
  uint64_t now = 0, highest = 0;
  for (const uint64_t by : change) highest = std::max(highest, now += by);
  return highest;
}

}  // namespace

Outline outline_of(const Snapshot& snapshot, const VerifiedRecording& unverified) {
  Outline out;
  out.lifetimes = lifetimes_without_sizes(snapshot, unverified);
  out.steps = steps_of(snapshot, unverified.device, out.lifetimes);
  out.categories = categories_of(snapshot, unverified.device, out.lifetimes, out.steps);
  return out;
}

EarlyWork begin_early(std::shared_ptr<const Snapshot> snapshot,
                      const VerifiedRecording& unverified) {
  EarlyWork early;
  if (unverified.program->ops.size() < k_ops_worth_a_thread) return early;
  // Without a thread to be had it is done when it is asked for.
  const auto policy = std::launch::async | std::launch::deferred;
  early.trials = early_trials(unverified);
  const size_t processors = std::thread::hardware_concurrency();
  const size_t replays = early.trials.inquiry ? early.trials.inquiry->replays() : 0;
  // One processor is left to the verification. Who comes from there helps with the trials that are
  // left, so that all processors are busy to the end.
  const size_t workers = std::min(replays, std::max<size_t>(processors, 2) - 1);
  for (size_t i = 0; i < workers; ++i)
    early.workers.push_back(
        std::async(policy, [inquiry = early.trials.inquiry] { inquiry->work(); }));
  // Beside the verification and the trials there is a processor for it only where there are more.
  if (processors <= k_processors_of_trials) return early;
  early.outline = std::async(policy, [snapshot = std::move(snapshot), verified = unverified] {
    return outline_of(*snapshot, verified);
  });
  return early;
}

Observation observe(const Snapshot& snapshot, const VerifiedRecording& verified,
                    std::optional<uint64_t> limit, std::optional<Outline> outline) {
  Observation out;
  if (outline) {
    out.lifetimes = std::move(outline->lifetimes);
    out.steps = std::move(outline->steps);
    out.categories = std::move(outline->categories);
    add_sizes(out.lifetimes, verified);
  } else {
    out.lifetimes = lifetimes_of(snapshot, verified);
  }
  // Where no mark of a step was found, sizes tell where the first begins.
  if (!outline || out.steps.marks.empty()) {
    out.steps = steps_of(snapshot, verified.device, out.lifetimes);
    out.categories = categories_of(snapshot, verified.device, out.lifetimes, out.steps);
  }
  out.history = history_of(out.lifetimes, out.categories, out.steps, *verified.program);
  AllocatedWalk allocated(*verified.program, out.lifetimes);
  out.peak = instant_at(snapshot, verified, out, allocated.highest(0, out.lifetimes.events).event);
  out.peak_reserved_bytes = verified.peak_reserved;
  out.highest_pending_bytes = highest_pending(out.lifetimes);
  out.ooms = static_cast<uint32_t>(
      std::count_if(verified.program->ops.begin(), verified.program->ops.end(),
                    [](const memory::Op& op) { return op.kind == memory::OpKind::failed; }));
  const std::optional<memory::OutOfMemory>& met = verified.verification.result.oom;
  const std::optional<memory::Op> failed = recorded_failure(verified);
  // The model tells of the first one; where a library caught that, the first that nobody caught
  // counts, as in a replay.
  const bool is_end = met && (!failed || failed->caught || !is_caught(verified, met->event));
  if (is_end) {
    out.oom = oom_instant(snapshot, verified, out, *met, limit);
  } else if (failed) {
    out.oom = oom_instant(snapshot, verified, out, as_recorded(verified, out, *failed), limit);
  }
  if (out.history.trend == Trend::growing)
    out.growing = sites_at(snapshot, out.lifetimes, out.categories, out.lifetimes.work_end,
                           &out.history.grows);
  return out;
}

namespace {

// What was and what would have been, side by side where there are processors: neither needs the
// other, but that memory grows is to be seen before it can be left out.
Result<Trials> observe_and_try(const Snapshot& snapshot, const VerifiedRecording& verified,
                               std::optional<uint64_t> limit, EarlyWork early,
                               Observation& observation) {
  std::optional<Result<std::vector<memory::Answer>>> settings;
  std::optional<Result<std::optional<memory::Answer>>> without_pools, without_growth;
  in_parallel(2, verified.event_count() / k_diagnosis_events_per_thread, [&](size_t i) {
    if (i == 1) {
      settings.emplace(try_settings(verified, early.trials));
      without_pools.emplace(try_without_pools(verified));
      return;
    }
    std::optional<Outline> outline;
    if (early.outline.valid()) outline = early.outline.get();
    observation = observe(snapshot, verified, limit, std::move(outline));
    without_growth.emplace(try_without_growth(verified, observation.history));
  });
  Trials trials;
  CUFIT_TRY(settings_tried, std::move(*settings));
  trials.settings = std::move(settings_tried);
  CUFIT_TRY(pools_tried, std::move(*without_pools));
  trials.without_pools = std::move(pools_tried);
  CUFIT_TRY(growth_tried, std::move(*without_growth));
  trials.without_growth = std::move(growth_tried);
  return trials;
}

}  // namespace

namespace {

// What a replay without pools shows is certain only where nothing but the graphs' own replays is
// not followed.
void lower_where_inexact(Diagnosis& out) {
  const auto exact = [](const Advice& one) {
    return std::all_of(one.replay_limitations.begin(), one.replay_limitations.end(),
                       [](const std::string& reason) { return reason == "graph_replays"; });
  };
  for (const Advice& one : out.advice) {
    if (one.remedy != Remedy::without_pools || exact(one)) continue;
    for (Cause& cause : out.causes)
      if (cause.id == "cudagraph_pool" && cause.confidence == Confidence::certain)
        cause.confidence = Confidence::likely;
  }
}

}  // namespace

Result<Diagnosis> diagnose(const Snapshot& snapshot, const VerifiedRecording& verified,
                           std::optional<uint64_t> limit, EarlyWork early) {
  Diagnosis out;
  CUFIT_TRY(trials, observe_and_try(snapshot, verified, limit, std::move(early), out));
  if (limit) out.limits = given_limits(*limit);
  if (out.oom) out.limits = out.oom->limits;
  const std::optional<Limits>& limits = out.limits;
  CUFIT_TRY(advice, advice_for(verified, trials, limits));
  out.advice = std::move(advice);
  for (const Advice& one : out.advice)
    for (const std::string& reason : one.replay_limitations)
      if (std::find(out.replay_limitations.begin(), out.replay_limitations.end(), reason) ==
          out.replay_limitations.end())
        out.replay_limitations.push_back(reason);

  OomCase facts{snapshot,
                verified,
                out.lifetimes,
                out.steps,
                out.categories,
                out.history,
                {},
                memory::k_no_stack,
                {},
                out.peak.moment,
                out.peak.by_category,
                limits,
                {},
                {},
                out.highest_pending_bytes};
  if (out.oom) {
    facts.oom = out.oom->request;
    const size_t event = snapshot.traces[verified.device].first + out.oom->request.event;
    facts.oom_stack = snapshot.events[event].stack;
    facts.device_free = out.oom->device_free;
    facts.at = out.oom->instant.moment;
    facts.held = out.oom->instant.by_category;
    facts.rescue = rescue_among(out.advice, limits);
    facts.without_pools = rescue_without_pools(out.advice, limits);
  }
  out.causes = causes_of(facts);
  lower_where_inexact(out);
  out.evaluates = std::any_of(out.causes.begin(), out.causes.end(), [](const Cause& cause) {
    return (cause.id == "eval_without_no_grad" && cause.confidence != Confidence::possible) ||
           (cause.id == "tensors_kept" && cause.evidence[0].id == "outputs_kept");
  });
  // A recording that the model cannot follow, or that contradicts itself, proves nothing.
  if (verified.verification.exact() && verified.program->contradictions == 0) return out;
  for (Cause& cause : out.causes)
    if (cause.confidence == Confidence::certain) cause.confidence = Confidence::likely;
  return out;
}

}  // namespace cufit::analysis
