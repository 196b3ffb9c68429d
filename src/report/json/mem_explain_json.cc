// SPDX-License-Identifier: Apache-2.0
// Schema cufit.mem.explain/1, English texts. Members may be added within the schema's version, none
// is renamed or removed.
#include "base/format.h"
#include "report/explain.h"
#include "report/mem_explain.h"
#include "report/terminal/mem_explain_words.h"
#include "report/json/mem_recorded_json.h"
#include "report/terminal/mem_words.h"
#include "report/message.h"
#include "report/step_command.h"

namespace cufit::report {
namespace {

using analysis::Cause;
using analysis::Instant;
using analysis::Number;

Json step_or_null(const std::optional<uint32_t>& step) {
  return step ? Json(*step) : Json(nullptr);
}

// Null in an evaluation that follows a step; `after_step` then says which.
void add_step(Json& out, const analysis::Diagnosis& diagnosis, const Instant& instant) {
  const std::optional<uint32_t> after = step_before_evaluation(diagnosis, instant);
  out["step"] = after ? Json(nullptr) : step_or_null(instant.step);
  out["after_step"] = step_or_null(after);
}

Json frame_json(const memory::Snapshot& snapshot, uint32_t frame) {
  if (frame >= analysis::k_not_python) return nullptr;
  const memory::Frame& at = snapshot.stacks.frame(frame);
  return {{"file", snapshot.text(at.filename)},
          {"line", at.line},
          {"function", snapshot.text(at.name)}};
}

Json place_json(const memory::Snapshot& snapshot, const analysis::Place& place) {
  Json out;
  out["recorded"] = place.frame != analysis::k_no_frame;
  out["frame"] = frame_json(snapshot, place.frame);
  out["caller"] = frame_json(snapshot, place.caller);
  return out;
}

// What is allocated by category, then what is reserved and not allocated: the sum is
// reserved_bytes.
Json categories_json(const Instant& instant) {
  Json out = Json::array();
  const auto add = [&](const char* name, uint64_t value, bool allocated) {
    out.push_back({{"category", name}, {"bytes", value}, {"allocated", allocated}});
  };
  for (size_t i = 0; i < analysis::k_categories; ++i)
    add(to_string(static_cast<analysis::Category>(i)), instant.by_category[i], true);
  add("pending", instant.moment.pending_bytes, false);
  add("cached", instant.moment.cached_bytes(), false);
  return out;
}

Json sites_json(const memory::Snapshot& snapshot, const std::vector<analysis::Site>& sites) {
  constexpr size_t k_most = 50;
  Json out = Json::array();
  for (size_t i = 0; i < sites.size() && i < k_most; ++i) {
    Json site = place_json(snapshot, sites[i].place);
    site["bytes"] = sites[i].bytes;
    site["blocks"] = sites[i].blocks;
    out.push_back(std::move(site));
  }
  return out;
}

Json evidence_json(const Cause& cause, const knowledge::Knowledge& knowledge) {
  Json out = Json::array();
  for (const analysis::EvidenceItem& item : cause.evidence) {
    Json line;
    line["id"] = item.id;
    line["text"] = evidence_words(item, "en", knowledge);
    for (const Number& number : item.numbers) {
      if (number.kind == Number::Kind::bytes) line[number.name + "_bytes"] = number.value;
      if (number.kind == Number::Kind::count) line[number.name] = number.value;
      if (number.kind == Number::Kind::text) line[number.name] = number.text;
    }
    out.push_back(std::move(line));
  }
  return out;
}

Json cause_json(const Cause& cause, const knowledge::Knowledge& knowledge) {
  const auto part = [&](const char* name) { return mem_cause_text(cause, name, "en", knowledge); };
  return {
      {"id", cause.id},
      {"confidence", to_string(cause.confidence)},
      {"summary", part("title")},
      {"why", part("why")},
      {"next", part("next")},
      {"command", step_command_json(part("next"), mem_cause_text(cause, "next", "zh", knowledge))},
      {"evidence", evidence_json(cause, knowledge)},
      {"would_decide",
       cause.confidence == analysis::Confidence::certain ? Json(nullptr) : Json(part("decide"))}};
}

Json peak_json(const MemExplainView& view) {
  const Instant& peak = view.diagnosis.peak;
  Json out;
  out["event"] = peak.moment.event;
  add_step(out, view.diagnosis, peak);
  out["allocated_bytes"] = peak.moment.allocated_bytes;
  out["reserved_bytes"] = peak.moment.reserved_bytes;
  out["by_category"] = categories_json(peak);
  out["by_frame"] = sites_json(view.snapshot, peak.by_frame);
  return out;
}

Json oom_json(const MemExplainView& view) {
  if (!view.diagnosis.oom) return nullptr;
  const analysis::OomInstant& oom = *view.diagnosis.oom;
  Json out;
  out["event"] = oom.request.event;
  add_step(out, view.diagnosis, oom.instant);
  out["tried_bytes"] = oom.request.tried;
  out["requested_bytes"] = oom.request.rounded;
  out["allocated_bytes"] = oom.instant.moment.allocated_bytes;
  out["reserved_bytes"] = oom.instant.moment.reserved_bytes;
  out["largest_free_bytes"] = oom.request.largest_free_in_pool;
  out["device_free_bytes"] = or_null(oom.device_free);
  out["limit_at_least_bytes"] = oom.limits.at_least;
  out["limit_at_most_bytes"] = oom.limits.at_most;
  out["card_full"] = oom.limits.card_full;
  out["served_by_model"] = oom.served_by_model;
  out["caught_by_library"] = oom.caught;
  out["requests_later"] = oom.requests_later;
  out["asked_by"] = place_json(view.snapshot, oom.place);
  out["by_category"] = categories_json(oom.instant);
  out["by_frame"] = sites_json(view.snapshot, oom.instant.by_frame);
  return out;
}

Json steps_json(const MemExplainView& view) {
  const analysis::Steps& steps = view.diagnosis.steps;
  const analysis::History& history = view.diagnosis.history;
  Json out;
  out["count"] = steps.known() ? Json(steps.finished) : Json(nullptr);
  out["known_by"] = to_string(steps.known_by);
  out["first"] = steps.first;
  out["trend"] = to_string(history.trend);
  out["growth_per_step_bytes"] = history.growth_per_step_bytes;
  out["growth_bytes"] = history.growth_bytes;
  out["peaks"] = Json::array();
  for (const analysis::StepUse& use : history.steps)
    out["peaks"].push_back({{"step", use.step},
                            {"event", use.peak_event},
                            {"allocated_bytes", use.peak_bytes},
                            {"begins_with_bytes", use.begin_bytes},
                            {"finished", use.finished}});
  out["growing"] = sites_json(view.snapshot, view.diagnosis.growing);
  return out;
}

Json fragmentation_json(const analysis::Diagnosis& diagnosis) {
  const analysis::Moment& at =
      diagnosis.oom ? diagnosis.oom->instant.moment : diagnosis.peak.moment;
  Json out;
  out["event"] = at.event;
  out["requested_bytes"] = diagnosis.oom ? Json(diagnosis.oom->request.rounded) : Json(nullptr);
  out["largest_free_bytes"] = at.largest_free_bytes;
  out["cached_bytes"] = at.cached_bytes();
  out["inactive_split_bytes"] = at.inactive_split_bytes;
  out["releasable_bytes"] = at.releasable_bytes;
  out["pending_bytes"] = at.pending_bytes;
  out["highest_pending_bytes"] = diagnosis.highest_pending_bytes;
  out["rounding_bytes"] = at.rounding_bytes;
  out["private_pools_reserved_bytes"] = at.private_reserved_bytes;
  out["sizes_are_exact"] = diagnosis.lifetimes.sizes_are_exact;
  return out;
}

Json advice_json(const std::vector<analysis::Advice>& advice) {
  Json out = Json::array();
  for (const analysis::Advice& one : advice)
    out.push_back({{"remedy", to_string(one.remedy)},
                   {"settings", one.settings},
                   {"peak_allocated_bytes", one.peak_allocated_bytes},
                   {"peak_reserved_bytes", one.peak_reserved_bytes},
                   {"saved_bytes", one.saved_bytes},
                   {"survives", one.survives ? Json(*one.survives) : Json(nullptr)},
                   {"smallest_limit_bytes", or_null(one.smallest_limit_bytes)},
                   {"not_modelled", one.replay_limitations}});
  return out;
}

// Of a limit that the user named or `mem record` wrote down; warning: "below_held" or "above_refused".
Json given_limit_json(const analysis::Diagnosis& diagnosis) {
  if (!diagnosis.limits || !diagnosis.limits->given) return nullptr;
  const char* warning = limit_warning(diagnosis);
  return {{"bytes", diagnosis.limits->at_most},
          {"warning", *warning == 0 ? Json(nullptr) : Json(warning)}};
}

Json devices_json(const MemExplainView& view) {
  Json out = Json::array();
  for (uint32_t i = 0; i < view.snapshot.traces.size(); ++i)
    out.push_back({{"device", i},
                   {"events", view.snapshot.traces[i].count},
                   {"ran_out", memory::ran_out(view.snapshot, i)},
                   {"explained", i == view.verified.device}});
  return out;
}

}  // namespace

std::string evidence_words(const analysis::EvidenceItem& item, std::string_view lang,
                           const knowledge::Knowledge& knowledge) {
  std::map<std::string, std::string> args;
  for (const Number& number : item.numbers)
    args[number.name] = number.kind == Number::Kind::bytes   ? gib(number.value)
                        : number.kind == Number::Kind::count ? thousands(number.value)
                                                             : number.text;
  return label(knowledge, lang, "mem.evidence." + item.id, args);
}

std::string mem_cause_text(const Cause& cause, std::string_view part, std::string_view lang,
                           const knowledge::Knowledge& knowledge) {
  const std::string key = format("mem.cause.{}.{}.{}", cause.id, cause.variant, std::string(part));
  if (!cause.variant.empty() && (part == "title" || part == "why"))
    return label(knowledge, lang, key);
  explain::Cause plain;
  plain.id = cause.id;
  plain.finding.id = cause.id;
  return cause_text(plain, part, lang, knowledge);
}

std::string mem_explain_json(const MemExplainView& view) {
  const analysis::Diagnosis& diagnosis = view.diagnosis;
  Json out;
  out["schema"] = "cufit.mem.explain/1";
  out["cufit"] = CUFIT_VERSION;
  out["recorded"] = recorded_json(view.verified);
  out["devices"] = devices_json(view);
  out["contradicts_itself"] = contradicts_itself(view);
  out["root_cause"] =
      diagnosis.causes.empty() ? Json(nullptr) : cause_json(diagnosis.causes[0], view.knowledge);
  out["also"] = Json::array();
  for (size_t i = 1; i < diagnosis.causes.size(); ++i)
    out["also"].push_back(cause_json(diagnosis.causes[i], view.knowledge));
  out["peak"] = peak_json(view);
  out["oom"] = oom_json(view);
  out["ooms"] = diagnosis.ooms;
  out["given_limit"] = given_limit_json(diagnosis);
  out["steps"] = steps_json(view);
  out["fragmentation"] = fragmentation_json(diagnosis);
  out["advice"] = advice_json(diagnosis.advice);
  out["not_modelled"] = diagnosis.replay_limitations;
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
