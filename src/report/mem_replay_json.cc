// SPDX-License-Identifier: Apache-2.0
// Schema cufit.mem.replay/1. Members may be added within the schema's version, none is renamed or
// removed.
#include "report/mem_json.h"
#include "report/mem_replay.h"

namespace cufit::report {
namespace {

MemJson oom_json(const memory::ReplayResult& result, const analysis::Steps& steps) {
  if (!result.oom) return nullptr;
  const memory::OutOfMemory& oom = *result.oom;
  const std::optional<uint32_t> step = steps.at(static_cast<uint32_t>(oom.event));
  return {{"event", oom.event},
          {"step", step ? MemJson(*step) : MemJson(nullptr)},
          {"tried_bytes", oom.tried},
          {"reserved_bytes", oom.reserved},
          {"largest_free_bytes", oom.largest_free_in_pool},
          {"requested_bytes", oom.requested},
          {"allocated_bytes", oom.allocated},
          {"retry_would_do", oom.cached_block_would_do}};
}

MemJson run_json(const memory::Answer& answer, const analysis::Steps& steps, bool died) {
  const memory::DeviceStats& stats = answer.result.stats;
  const memory::Question& question = answer.question;
  MemJson run;
  run["settings"] = question.settings;
  run["limit_bytes"] = size_or_null(answer.limit);
  run["peak_allocated_bytes"] = stats.allocated_bytes.peak;
  run["peak_reserved_bytes"] = stats.reserved_bytes.peak;
  run["peak_segments"] = stats.segments.peak;
  run["cuda_mallocs"] = stats.cuda_mallocs + stats.maps;
  run["retries"] = stats.num_alloc_retries;
  run["oom"] = oom_json(answer.result, steps);
  if (!answer.result.not_modelled.empty()) run["not_modelled"] = answer.result.not_modelled;
  run["survived_recorded_oom"] =
      died ? MemJson(answer.result.survived_recorded_oom) : MemJson(nullptr);
  return run;
}

}  // namespace

MemJson size_or_null(const std::optional<uint64_t>& bytes) {
  return bytes ? MemJson(*bytes) : MemJson(nullptr);
}

MemJson recorded_json(const memory::Study& study) {
  const memory::Verification& verification = study.verification;
  MemJson recorded;
  recorded["settings"] = study.settings;
  if (study.settings_unread) recorded["settings_written"] = study.settings_written;
  recorded["peak_allocated_bytes"] = study.peak_allocated;
  recorded["peak_reserved_bytes"] = study.peak_reserved;
  recorded["retries"] = size_or_null(study.retries);
  recorded["segment_events"] = verification.segment_events;
  recorded["segment_events_matched"] = verification.segment_events_matched;
  recorded["allocations"] = verification.allocations;
  recorded["addresses_matched"] = verification.addresses_matched;
  recorded["first_difference_event"] =
      verification.first_difference ? MemJson(*verification.first_difference) : MemJson(nullptr);
  recorded["events"] = study.event_count();
  recorded["device"] = study.device;
  recorded["complete"] = study.program->initial.empty();
  const std::optional<memory::RecordedLimit>& limit = study.limit ? study.limit : study.met_limit;
  recorded["limit_at_least_bytes"] = limit ? MemJson(limit->at_least) : MemJson(nullptr);
  recorded["limit_below_bytes"] = limit ? MemJson(limit->below) : MemJson(nullptr);
  return recorded;
}

std::string mem_replay_json(const MemReplayView& view) {
  MemJson out;
  out["schema"] = "cufit.mem.replay/1";
  out["cufit"] = CUFIT_VERSION;
  out["recorded"] = recorded_json(view.study);
  out["runs"] = MemJson::array();
  for (const memory::Answer& answer : view.answers)
    out["runs"].push_back(run_json(answer, view.steps, view.study.limit.has_value()));
  return out.dump(2, ' ', false, MemJson::error_handler_t::replace) + "\n";
}

}  // namespace cufit::report
