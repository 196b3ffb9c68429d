// SPDX-License-Identifier: Apache-2.0
// Schema cufit.mem.replay/1. Members may be added within the schema's version, none is renamed or
// removed.
#include "report/json/mem_recorded_json.h"
#include "report/mem_replay.h"

namespace cufit::report {
namespace {

Json oom_json(const memory::ReplayResult& result, const analysis::Steps& steps) {
  if (!result.oom) return nullptr;
  const memory::OutOfMemory& oom = *result.oom;
  const std::optional<uint32_t> step = steps.at(static_cast<uint32_t>(oom.event));
  return {{"event", oom.event},
          {"step", step ? Json(*step) : Json(nullptr)},
          {"tried_bytes", oom.tried},
          {"reserved_bytes", oom.reserved},
          {"largest_free_bytes", oom.largest_free_in_pool},
          {"requested_bytes", oom.requested},
          {"allocated_bytes", oom.allocated},
          {"retry_would_do", oom.cached_block_would_do}};
}

Json run_json(const memory::Answer& answer, const analysis::Steps& steps, bool died) {
  const memory::DeviceStats& stats = answer.result.stats;
  const memory::Question& question = answer.question;
  Json run;
  run["settings"] = question.settings;
  run["limit_bytes"] = or_null(answer.limit);
  run["peak_allocated_bytes"] = stats.allocated_bytes.peak;
  run["peak_reserved_bytes"] = stats.reserved_bytes.peak;
  run["peak_segments"] = stats.segments.peak;
  run["cuda_mallocs"] = stats.cuda_mallocs + stats.maps;
  run["retries"] = stats.num_alloc_retries;
  run["oom"] = oom_json(answer.result, steps);
  if (!answer.result.replay_limitations.empty())
    run["not_modelled"] = answer.result.replay_limitations;
  run["survived_recorded_oom"] = died ? Json(answer.result.survived_recorded_oom) : Json(nullptr);
  return run;
}

}  // namespace

Json recorded_json(const memory::VerifiedRecording& verified) {
  const memory::Verification& verification = verified.verification;
  Json recorded;
  recorded["settings"] = verified.settings;
  if (verified.settings_unread) recorded["settings_written"] = verified.settings_written;
  recorded["peak_allocated_bytes"] = verified.peak_allocated;
  recorded["peak_reserved_bytes"] = verified.peak_reserved;
  recorded["retries"] = or_null(verified.retries);
  recorded["segment_events"] = verification.segment_events;
  recorded["segment_events_matched"] = verification.segment_events_matched;
  recorded["allocations"] = verification.allocations;
  recorded["addresses_matched"] = verification.addresses_matched;
  recorded["first_difference_event"] =
      verification.first_difference ? Json(*verification.first_difference) : Json(nullptr);
  recorded["events"] = verified.event_count();
  recorded["device"] = verified.device;
  recorded["complete"] = verified.program->initial.empty();
  const std::optional<memory::RecordedLimit>& limit =
      verified.limit ? verified.limit : verified.met_limit;
  recorded["limit_at_least_bytes"] = limit ? Json(limit->at_least) : Json(nullptr);
  recorded["limit_below_bytes"] = limit ? Json(limit->below) : Json(nullptr);
  return recorded;
}

std::string mem_replay_json(const MemReplayView& view) {
  Json out;
  out["schema"] = "cufit.mem.replay/1";
  out["cufit"] = CUFIT_VERSION;
  out["recorded"] = recorded_json(view.verified);
  out["runs"] = Json::array();
  for (const memory::Answer& answer : view.answers)
    out["runs"].push_back(run_json(answer, view.steps, view.verified.limit.has_value()));
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
