// SPDX-License-Identifier: Apache-2.0
// Schema cufit.fit/1. Members may be added within the schema's version, none is renamed or removed.
#include "report/fit_plans.h"
#include "report/terminal/fit_words.h"
#include "report/json/mem_recorded_json.h"

namespace cufit::report {
namespace {

Json moment_json(const fit::Moment& moment) {
  return {{"step", moment.step},
          {"phase", phase_name(moment.phase)},
          {"op", moment.op},
          {"module", moment.module},
          {"source", moment.source}};
}

Json breakdown_json(const fit::Prediction& prediction) {
  Json out;
  for (const auto& [name, bytes] : parts_of(prediction)) out[name + "_bytes"] = bytes;
  return out;
}

Json gpu_json(const fit::CardAnswer& gpu, bool batch_known, bool of_worlds) {
  Json out;
  out["name"] = gpu.name;
  out["usable_bytes"] = gpu.usable;
  out["fits"] = gpu.fits;
  // Of a program whose batch size is not known there is no largest one.
  out["largest_batch"] = batch_known ? Json(gpu.largest.batch) : Json(nullptr);
  out["largest_batch_unbounded"] = gpu.largest.unbounded && !gpu.largest.only_traced;
  out["largest_batch_retries"] = gpu.largest_retries;
  out["largest_batch_without_retries"] = batch_known ? Json(gpu.largest_whole) : Json(nullptr);
  out["only_traced_batches"] = gpu.largest.only_traced;
  out["total_bytes"] = gpu.total;
  out["outside_allocator_bytes"] = gpu.outside_allocator;
  out["capacity_measured"] = gpu.measured;
  out["compute_capability"] = or_null(gpu.cc);
  out["peak_reserved_bytes"] = gpu.prediction ? Json(gpu.prediction->peak_reserved) : Json(nullptr);
  out["peak_reserved_upper_bytes"] =
      gpu.prediction ? Json(gpu.prediction->peak_reserved_upper) : Json(nullptr);
  out["retries"] = gpu.prediction ? Json(gpu.prediction->alloc_retries) : Json(nullptr);
  const bool dies = gpu.prediction && (gpu.prediction->oom || gpu.prediction->upper_oom);
  if (of_worlds) out["least_world"] = or_null(gpu.least_world);
  out["oom"] = dies ? moment_json(gpu.prediction->oom ? gpu.prediction->oom->moment
                                                      : gpu.prediction->upper_oom->moment)
                    : Json(nullptr);
  return out;
}

Json warning_json(const fit::Warning& warning, const knowledge::Knowledge& knowledge) {
  return {{"id", warning.id},
          {"text", fit_warning_text(warning, knowledge, "en")},
          {"source", or_null(warning.source)}};
}

Json traced_json(const FitView& view) {
  Json out;
  out["batches"] = view.answer.batch == 0 || view.answer.recorded
                       ? Json::array()
                       : Json(traced_batches(view.answer.traced()));
  out["steps"] = view.answer.traced().traced_steps();
  out["found_batch"] = or_null(view.answer.programs.own_batch);
  out["batch_from"] = or_null(std::string(view.answer.traced().fact("batch_from")));
  out["extrapolates"] = view.answer.traced().extrapolates();
  out["torch"] = std::string(view.answer.traced().fact("torch"));
  out["card"] = view.answer.card.name;
  out["events"] = view.answer.traced().events.size();
  return out;
}

Json fit_recorded_json(const fit::RecordedFigures& recorded) {
  Json out;
  out["recordings"] = Json::array();
  for (const fit::Recording& one : recorded.recordings)
    out["recordings"].push_back({{"file", one.file},
                                 {"batch", one.batch},
                                 {"steps", one.steps},
                                 {"peak_allocated_bytes", one.peak_allocated},
                                 {"peak_reserved_bytes", one.peak_reserved}});
  out["lowest_reserved_bytes"] = recorded.lowest_reserved;
  out["replayed_reserved_bytes"] = recorded.replayed_reserved;
  out["allocations"] = recorded.storages;
  out["allocations_proved"] = recorded.proved;
  return out;
}

// Without ranks, one: it is what a recording tells, too.
Json ranks_json(const fit::Answer& answer) {
  Json out = Json::array();
  const auto add = [&](const fit::RankAnswer& rank) {
    out.push_back({{"rank", rank.rank},
                   {"peak_allocated_bytes", rank.peak_allocated},
                   {"peak_reserved_bytes", rank.peak_reserved},
                   {"peak_reserved_upper_bytes", rank.peak_reserved_upper},
                   {"outside_allocator_bytes", rank.outside_allocator},
                   {"like_rank", or_null(rank.like)}});
  };
  for (const fit::RankAnswer& rank : answer.distributed.ranks) add(rank);
  if (out.empty()) add(fit::rank_answer(0, answer.prediction));
  return out;
}

Json worlds_json(const std::vector<fit::WorldAnswer>& worlds) {
  Json out = Json::array();
  for (const fit::WorldAnswer& at : worlds)
    out.push_back({{"world", at.world},
                   {"peak_allocated_bytes", at.peak_allocated},
                   {"peak_reserved_bytes", at.peak_reserved},
                   {"peak_reserved_upper_bytes", at.peak_reserved_upper},
                   {"outside_allocator_bytes", at.outside_allocator}});
  return out;
}

std::string finish(const Json& out) { return out.dump(2) + "\n"; }

}  // namespace

std::string fit_json(const FitView& view) {
  const fit::Prediction& prediction = view.answer.prediction;
  Json out;
  out["schema"] = "cufit.fit/1";
  out["cufit"] = CUFIT_VERSION;
  out["program"] = view.program;
  out["batch"] = view.answer.batch == 0 ? Json(nullptr) : Json(view.answer.batch);
  out["peak_allocated_bytes"] = prediction.peak_allocated;
  out["peak_allocated_upper_bytes"] = prediction.peak_allocated_upper;
  out["peak_reserved_bytes"] = prediction.peak_reserved;
  out["peak_reserved_upper_bytes"] = prediction.peak_reserved_upper;
  out["outside_allocator_bytes"] = prediction.outside_allocator;
  out["world"] = view.answer.distributed.world;
  out["ranks"] = ranks_json(view.answer);
  if (const std::string_view how = view.answer.traced().fact("strategy"); !how.empty())
    out["strategy"] = how;
  if (!view.answer.distributed.worlds.empty())
    out["worlds"] = worlds_json(view.answer.distributed.worlds);
  out["breakdown"] = breakdown_json(prediction);
  out["peak"] = moment_json(prediction.peak);
  out["activations_by_module"] = Json::array();
  for (const fit::ModuleBytes& row : prediction.activations_by_module)
    out["activations_by_module"].push_back({{"module", row.module}, {"bytes", row.bytes}});
  out["gpus"] = Json::array();
  for (const fit::CardAnswer& gpu : view.answer.cards)
    out["gpus"].push_back(gpu_json(gpu, view.answer.batch != 0, !view.answer.distributed.worlds.empty()));
  out["plans"] = fit_plans_json(view);
  out["curve"] = Json::array();
  for (const fit::CurvePoint& point : view.answer.curve)
    out["curve"].push_back({{"batch", point.batch},
                            {"peak_reserved_bytes", point.peak_reserved},
                            {"upper_bytes", point.peak_reserved_upper},
                            {"peak_allocated_bytes", point.peak_allocated}});
  out["settings"] = view.answer.settings;
  out["traced"] = traced_json(view);
  if (view.answer.recorded) out["recorded"] = fit_recorded_json(*view.answer.recorded);
  out["warnings"] = Json::array();
  for (const fit::Warning& warning : view.answer.warnings)
    out["warnings"].push_back(warning_json(warning, view.knowledge));
  return finish(out);
}

std::string fit_failure_json(const fit::TraceFailure& failure,
                             const knowledge::Knowledge& knowledge) {
  Json error;
  error["kind"] = failure.kind;
  error["detail"] = or_null(failure.detail);
  error["source"] = or_null(failure.source);
  error["exit_code"] = failure.exit_code;
  error["batch"] = or_null(failure.batch);
  error["learned"] = {{"torch", or_null(failure.torch)},
                      {"found_batch", or_null(failure.found)},
                      {"steps", failure.steps},
                      {"storages", failure.storages},
                      {"peak_allocated_bytes", failure.peak_allocated}};
  Json out;
  out["schema"] = "cufit.fit/1";
  out["cufit"] = CUFIT_VERSION;
  out["program"] = failure.program;
  out["error"] = std::move(error);
  out["warnings"] = Json::array();
  for (const fit::Warning& warning : failure.warnings)
    out["warnings"].push_back(warning_json(warning, knowledge));
  return finish(out);
}

}  // namespace cufit::report
