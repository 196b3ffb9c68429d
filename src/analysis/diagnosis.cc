// SPDX-License-Identifier: Apache-2.0
#include "analysis/diagnosis.h"

#include <algorithm>

namespace cufit::analysis {
namespace {

using memory::Snapshot;
using memory::Study;

Instant instant_at(const Snapshot& snapshot, const Study& study, const Observation& so_far,
                   uint32_t event) {
  Instant instant;
  instant.moment = moment_at(study, so_far.lifetimes, event);
  instant.step = so_far.steps.at(event);
  instant.by_category = footprint_at(so_far.lifetimes, so_far.categories, event);
  instant.by_frame = sites_at(snapshot, so_far.lifetimes, so_far.categories, event);
  return instant;
}

Limits limits_of(const Study& study, std::optional<uint64_t> given) {
  Limits limits;
  if (given) {
    limits.at_least = limits.at_most = *given;
    limits.given = true;
    return limits;
  }
  limits.at_least = study.limit->at_least;
  limits.at_most = study.limit->below - 1;
  limits.card_full = study.limit->card_full;
  return limits;
}

OomInstant oom_instant(const Snapshot& snapshot, const Study& study, const Observation& so_far,
                       std::optional<uint64_t> limit) {
  OomInstant out;
  out.request = *study.verification.result.oom;
  const auto event = static_cast<uint32_t>(out.request.event);
  out.instant = instant_at(snapshot, study, so_far, event);
  const memory::TraceEvent& row = snapshot.events[snapshot.traces[study.device].first + event];
  out.place = place_of(snapshot, row.stack);
  if (row.action == memory::Action::oom && row.address != memory::k_absent)
    out.device_free = row.address;
  out.limits = limits_of(study, limit);
  return out;
}

// The most that ever waited for other streams at once.
uint64_t highest_pending(const Lifetimes& lifetimes) {
  std::vector<uint64_t> change(lifetimes.events + 1);  // modulo 2^64
  for (const Lifetime& row : lifetimes.rows) {
    // What completes with the next event never waited.
    if (row.free_requested >= lifetimes.events || row.free_completed == row.free_requested + 1)
      continue;
    change[row.free_requested] += row.block_bytes;
    change[std::min(row.free_completed, lifetimes.events)] -= row.block_bytes;
  }
  uint64_t now = 0, highest = 0;
  for (const uint64_t by : change) highest = std::max(highest, now += by);
  return highest;
}

}  // namespace

Observation observe(const Snapshot& snapshot, const Study& study, std::optional<uint64_t> limit) {
  Observation out;
  out.lifetimes = lifetimes_of(snapshot, study);
  out.steps = steps_of(snapshot, study.device, out.lifetimes);
  out.categories = categories_of(snapshot, study.device, out.lifetimes, out.steps);
  const std::vector<uint64_t> allocated = allocated_over_time(out.lifetimes);
  out.history = history_of(out.lifetimes, out.categories, out.steps, allocated);
  const auto peak = std::max_element(allocated.begin(), allocated.end());
  out.peak = instant_at(snapshot, study, out, static_cast<uint32_t>(peak - allocated.begin()));
  out.peak_reserved_bytes = study.verification.result.stats.reserved_bytes.peak;
  out.highest_pending_bytes = highest_pending(out.lifetimes);
  if (study.verification.result.oom && study.limit)
    out.oom = oom_instant(snapshot, study, out, limit);
  if (out.history.trend == Trend::growing)
    out.growing = sites_at(snapshot, out.lifetimes, out.categories, out.lifetimes.work_end,
                           &out.history.grows);
  return out;
}

Result<Diagnosis> diagnose(const Snapshot& snapshot, const Study& study,
                           std::optional<uint64_t> limit) {
  Diagnosis out;
  static_cast<Observation&>(out) = observe(snapshot, study, limit);
  std::optional<Limits> limits;
  if (out.oom) limits = out.oom->limits;
  CUFIT_TRY(advice, advice_for(study, out.history, limits));
  out.advice = std::move(advice);
  for (const Advice& one : out.advice)
    for (const std::string& reason : one.not_modelled)
      if (std::find(out.not_modelled.begin(), out.not_modelled.end(), reason) ==
          out.not_modelled.end())
        out.not_modelled.push_back(reason);

  Case facts{snapshot,
             study,
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
             {}};
  if (out.oom) {
    facts.oom = out.oom->request;
    const size_t event = snapshot.traces[study.device].first + out.oom->request.event;
    facts.oom_stack = snapshot.events[event].stack;
    facts.device_free = out.oom->device_free;
    facts.at = out.oom->instant.moment;
    facts.held = out.oom->instant.by_category;
    facts.rescue = rescue_among(out.advice, limits);
  }
  out.causes = causes_of(facts);
  // A recording that the model cannot follow, or that contradicts itself, proves nothing.
  if (study.verification.exact() && study.program.contradictions == 0) return out;
  for (Cause& cause : out.causes)
    if (cause.confidence == Confidence::certain) cause.confidence = Confidence::likely;
  return out;
}

}  // namespace cufit::analysis
