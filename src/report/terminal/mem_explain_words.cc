// SPDX-License-Identifier: Apache-2.0
#include "report/terminal/mem_explain_words.h"

#include "report/terminal/mem_words.h"
#include "report/message.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

using analysis::Advice;
using analysis::Instant;

using Args = std::map<std::string, std::string>;

// Where it would have lived or died; the recorded settings' end is known.
std::string outcome_words(const MemExplainView& view, size_t index, std::string_view lang) {
  const Advice& one = view.diagnosis.advice[index];
  const Args limit = {{"limit", gib(one.smallest_limit_bytes.value_or(0))},
                      {"given", gib(view.diagnosis.limits->at_most)}};
  const bool lives = one.survives.value_or(false);
  if (!view.diagnosis.oom)
    return label(view.knowledge, lang, lives ? "mem.explain.would_live" : "mem.explain.would_die",
                 limit);
  if (!one.survives && one.smallest_limit_bytes)
    return label(view.knowledge, lang, "mem.explain.survives_from", limit);
  if (index == 0 && !lives && one.smallest_limit_bytes)
    return label(view.knowledge, lang, "mem.explain.enough_from", limit);
  std::string out =
      label(view.knowledge, lang, lives ? "mem.explain.survives" : "mem.explain.dies");
  if (one.smallest_limit_bytes && !lives)
    out += label(view.knowledge, lang, "semicolon") +
           label(view.knowledge, lang, "mem.explain.enough_from", limit);
  return out;
}

}  // namespace

std::optional<uint32_t> step_before_evaluation(const analysis::Diagnosis& diagnosis,
                                               const Instant& instant) {
  const uint32_t finished = diagnosis.steps.first + diagnosis.steps.finished;
  if (!diagnosis.evaluates || !instant.step || *instant.step < finished || finished == 0)
    return std::nullopt;
  return finished - 1;
}

bool contradicts_itself(const MemExplainView& view) {
  return view.verified.program->contradictions > 0 || !view.diagnosis.peak.moment.fits() ||
         (view.diagnosis.oom && !view.diagnosis.oom->instant.moment.fits());
}

// The run held more than that, or would have got what was refused.
const char* limit_warning(const analysis::Diagnosis& diagnosis) {
  if (!diagnosis.limits || !diagnosis.limits->given) return "";
  const uint64_t limit = diagnosis.limits->at_most;
  if (!diagnosis.oom) return limit < diagnosis.peak_reserved_bytes ? "below_held" : "";
  if (limit < diagnosis.oom->request.reserved) return "below_held";
  return limit - diagnosis.oom->request.reserved >= diagnosis.oom->request.tried ? "above_refused"
                                                                                 : "";
}

std::vector<Remark> source_remarks(const MemExplainView& view, std::string_view lang) {
  std::vector<Remark> out;
  if (contradicts_itself(view))
    out.push_back({label(view.knowledge, lang, "mem.explain.contradicts"), true});
  const memory::Verification& verification = view.verified.verification;
  if (verification.exact()) {
    out.push_back({label(view.knowledge, lang, "mem.explain.exact"), false});
  } else {
    out.push_back({label(view.knowledge, lang, "mem.inexact",
                         {{"matched", thousands(verification.segment_events_matched)},
                          {"all", thousands(verification.segment_events)},
                          {"same", thousands(verification.addresses_matched)},
                          {"blocks", thousands(verification.allocations)},
                          {"event", thousands(verification.first_difference.value_or(0))}}),
                   true});
  }
  if (view.limit_is_written && view.diagnosis.limits)
    out.push_back({label(view.knowledge, lang, "mem.explain.limit_written",
                         {{"limit", gib(view.diagnosis.limits->at_most)}}),
                   false});
  if (view.verified.met_limit && !view.diagnosis.limits)
    out.push_back({met_limit_words(view.verified, view.knowledge, lang), false});
  std::string others;
  for (uint32_t i = 0; i < view.snapshot.traces.size(); ++i) {
    if (i == view.verified.device || view.snapshot.traces[i].count == 0) continue;
    const char* key =
        memory::ran_out(view.snapshot, i) ? "mem.explain.device_ran_out" : "mem.explain.device";
    if (!others.empty()) others += label(view.knowledge, lang, "semicolon");
    others += label(
        view.knowledge, lang, key,
        {{"device", std::to_string(i)}, {"events", thousands(view.snapshot.traces[i].count)}});
  }
  if (!others.empty())
    out.push_back(
        {label(view.knowledge, lang, "mem.explain.devices", {{"devices", others}}), false});
  return out;
}

std::vector<Remark> end_remarks(const MemExplainView& view, std::string_view lang) {
  std::vector<Remark> out;
  const analysis::Diagnosis& diagnosis = view.diagnosis;
  if (diagnosis.oom) {
    const analysis::OomInstant& oom = *diagnosis.oom;
    if (oom.served_by_model)
      out.push_back({label(view.knowledge, lang, "mem.explain.served"), true});
    if (oom.requests_later > 0)
      out.push_back(
          {label(view.knowledge, lang, oom.caught ? "mem.explain.caught" : "mem.explain.went_on",
                 {{"count", thousands(oom.requests_later)}, {"ooms", thousands(diagnosis.ooms)}}),
           true});
  }
  const std::string warning = limit_warning(diagnosis);
  if (warning.empty()) return out;
  const uint64_t held =
      diagnosis.oom ? diagnosis.oom->request.reserved : diagnosis.peak_reserved_bytes;
  const uint64_t refused = diagnosis.oom ? held + diagnosis.oom->request.tried : 0;
  out.push_back(
      {label(view.knowledge, lang, "mem.explain.limit_" + (diagnosis.oom ? warning : "lived"),
             {{"limit", gib(diagnosis.limits->at_most)},
              {"held", gib(held)},
              {"refused", gib(refused)}}),
       true});
  return out;
}

std::string advice_words(const MemExplainView& view, size_t index, std::string_view lang) {
  const Advice& one = view.diagnosis.advice[index];
  const int64_t saved = one.saved_bytes;
  const char* key = saved > 0   ? "mem.explain.advice_saves"
                    : saved < 0 ? "mem.explain.advice_costs"
                                : "mem.explain.advice_same";
  if (index == 0)
    key = view.diagnosis.oom ? "mem.explain.advice_died" : "mem.explain.advice_recorded";
  if (one.remedy == analysis::Remedy::without_pools)
    key = saved < 0 ? "mem.explain.without_pools_costs" : "mem.explain.without_pools";
  if (one.remedy == analysis::Remedy::without_growth) key = "mem.explain.without_growth";
  const std::string settings =
      one.settings.empty() ? label(view.knowledge, lang, "mem.default") : printable(one.settings);
  std::string out = label(view.knowledge, lang, key,
                          {{"settings", settings},
                           {"reserved", gib(one.peak_reserved_bytes)},
                           {"saved", gib(static_cast<uint64_t>(saved < 0 ? -saved : saved))}});
  if (view.diagnosis.limits)
    out += label(view.knowledge, lang, "semicolon") + outcome_words(view, index, lang);
  if (!one.replay_limitations.empty()) out += " " + label(view.knowledge, lang, "mem.not_exact");
  return out;
}

}  // namespace cufit::report
