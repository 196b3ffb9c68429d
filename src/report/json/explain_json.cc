// SPDX-License-Identifier: Apache-2.0
// Schema cufit.explain/1: causes best first, none when nothing is known; English texts whatever the
// language of the terminal. Members may be added within the schema's version, none is renamed or
// removed.
#include "base/format.h"
#include "facts/facts_json.h"
#include "report/explain.h"
#include "report/json/json_value.h"
#include "report/step_command.h"

namespace cufit::report {
namespace {

Json evidence_json(const std::vector<explain::EvidenceLine>& evidence) {
  Json out = Json::array();
  for (const explain::EvidenceLine& line : evidence) {
    out.push_back({{"line", line.line},
                   {"text", line.text},
                   {"fact", or_null(line.fact)},
                   {"file", or_null(line.file)}});
  }
  return out;
}

Json cause_json(const explain::Cause& cause, const knowledge::Knowledge& knowledge) {
  auto text = [&](std::string_view part) { return cause_text(cause, part, "en", knowledge); };
  Json out;
  out["id"] = cause.id;
  out["confidence"] = to_string(cause.confidence);
  out["summary"] = text("title");
  out["why"] = text("why");
  out["next"] = text("next");
  out["command"] = step_command_json(text("next"), cause_text(cause, "next", "zh", knowledge));
  out["evidence"] = evidence_json(cause.evidence);
  out["would_decide"] = cause.would_decide ? or_null(text("decide")) : Json(nullptr);
  if (std::string rule = text("rule"); !rule.empty()) out["rule"] = std::move(rule);
  return out;
}

// A fact that the text does not speak of is left out: a line of text would else come with a page of
// them.
void leave_out_unsaid(Json& value) {
  for (size_t i = 0; i < value.size();) {
    if (value.is_object() && value[i].text_at("missing") == "not_asked")
      value.erase(i);
    else
      leave_out_unsaid(value[i++]);
  }
}

Json oom_json(const formats::OomMessage& oom) {
  Json out;
  out["kind"] = oom.kind;
  auto number = [&](const char* name, const auto& value) {
    out[name] = value ? Json(*value) : Json(nullptr);
  };
  number("gpu", oom.gpu);
  number("tried_bytes", oom.tried);
  number("total_bytes", oom.total);
  number("free_bytes", oom.free);
  number("allocated_bytes", oom.allocated);
  number("reserved_bytes", oom.reserved);
  number("pools_bytes", oom.pools);
  number("allowed_bytes", oom.allowed);
  // NVML's "not available" is no size.
  number("own_bytes", oom.own && *oom.own < UINT64_MAX ? oom.own : std::nullopt);
  out["others"] = Json::array();
  for (const formats::OomProcess& other : oom.others)
    out["others"].push_back({{"pid", other.pid}, {"bytes", other.bytes}});
  return out;
}

std::string contradiction(const explain::Ignored& ignored, const knowledge::Knowledge& knowledge) {
  const explain::EvidenceLine& line = ignored.contradiction;
  std::string out = clue_text(ignored.clue, "en", knowledge);
  if (line.line != 0) out += format(" (line {} of {}: {})", line.line, line.file, line.text);
  return out;
}

}  // namespace

Json explain_value(const ExplainView& view) {
  const explain::Explanation& explanation = view.explanation;
  Json out;
  out["schema"] = "cufit.explain/1";
  out["cufit"] = CUFIT_VERSION;
  put_tables(out, view.knowledge);
  out["causes"] = Json::array();
  for (const explain::Cause& cause : explanation.causes)
    out["causes"].push_back(cause_json(cause, view.knowledge));
  Json facts = facts::facts_value(explanation.facts);
  leave_out_unsaid(facts);
  out["facts"] = std::move(facts);
  out["ignored"] = Json::array();
  for (const explain::Ignored& ignored : explanation.ignored) {
    out["ignored"].push_back(
        {{"id", ignored.id}, {"contradicted_by", contradiction(ignored, view.knowledge)}});
  }
  if (!explanation.conflicts.empty()) {
    out["conflicts"] = Json::array();
    for (const explain::Conflict& one : explanation.conflicts)
      out["conflicts"].push_back({{"what", one.what}, {"text", one.text}, {"beside", one.beside}});
  }
  out["oom"] = explanation.oom ? oom_json(*explanation.oom) : Json(nullptr);
  out["lines"] = explanation.lines;
  out["thinned"] = explanation.thinned;
  return out;
}

std::string explain_json(const ExplainView& view) { return explain_value(view).dump(2) + "\n"; }

}  // namespace cufit::report
