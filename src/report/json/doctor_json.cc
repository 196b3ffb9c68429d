// SPDX-License-Identifier: Apache-2.0
// doctor's JSON, schema cufit.doctor/1. Texts are English whatever the language of the terminal.
// Members are written in a fixed order; new ones may be added within the schema's version, none is
// renamed or removed.
#include "report/json/doctor_value.h"

#include "base/format.h"
#include "facts/facts_json.h"
#include "report/json/json_value.h"
#include "report/step_command.h"

namespace cufit::report {
namespace {

Json to_json(const std::vector<checks::Evidence>& evidence) {
  Json out = Json::array();
  for (const checks::Evidence& item : evidence) {
    out.push_back({{"kind", item.kind}, {"detail", item.detail}, {"value", item.value}});
  }
  return out;
}

Json to_json(const checks::Finding& finding, const knowledge::Knowledge& knowledge) {
  const knowledge::FindingTexts* texts = knowledge.find_texts(finding.id);
  Json out;
  out["id"] = finding.id;
  out["severity"] = to_string(finding.severity);
  out["action"] = texts ? std::string(texts->action) : std::string("none");
  out["subject"] = finding.subject;
  out["summary"] = finding_text(finding, "title", "en", knowledge);
  out["why"] = finding_text(finding, "why", "en", knowledge);
  out["next"] = finding_text(finding, "next", "en", knowledge);
  out["command"] = finding_command(finding, knowledge);
  std::string rule = finding_text(finding, "rule", "en", knowledge);
  if (!rule.empty()) out["rule"] = std::move(rule);
  if (!finding.unknown_because.empty()) out["unknown_because"] = finding.unknown_because;
  out["evidence"] = to_json(finding.evidence);
  out["consequences"] = finding.consequences;
  return out;
}

std::string detail(const checks::Link& link, const knowledge::Knowledge& knowledge) {
  std::string_view text = knowledge.message(link.key, "en");
  return text.empty() ? link.key : format_message(text, link_args(link, "en", knowledge));
}

Json to_json(const checks::Link& link, const knowledge::Knowledge& knowledge) {
  Json out;
  out["name"] = link.name;
  out["state"] = to_string(link.state);
  out["detail"] = detail(link, knowledge);
  if (auto gpu = link.args.find("gpu"); gpu != link.args.end()) out["gpu"] = gpu->second;
  if (!link.evidence.empty()) out["evidence"] = to_json(link.evidence);
  return out;
}

Json to_json(const std::vector<checks::Link>& links, const knowledge::Knowledge& knowledge) {
  Json out = Json::array();
  for (const checks::Link& link : links) out.push_back(to_json(link, knowledge));
  return out;
}

}  // namespace

Json doctor_value(const DoctorView& view) {
  const checks::Report& report = view.report;
  Json out;
  out["schema"] = "cufit.doctor/1";
  out["cufit"] = CUFIT_VERSION;
  put_tables(out, view.knowledge);
  if (report.driver_branch != 0) out["driver_needed"] = std::to_string(report.driver_branch);
  out["verdict"] = report.verdict == checks::LinkState::ok ? "works" : to_string(report.verdict);
  out["findings"] = Json::array();
  for (const checks::Finding& finding : report.findings) {
    out["findings"].push_back(to_json(finding, view.knowledge));
  }
  out["chains"] = Json::array();
  for (const checks::Chain& chain : report.chains) {
    out["chains"].push_back(
        {{"gpu", chain.gpu}, {"env", chain.env}, {"links", to_json(chain.links, view.knowledge)}});
  }
  out["abilities"] = to_json(report.abilities, view.knowledge);
  out["host_limits"] = to_json(report.host_limits, view.knowledge);
  if (!report.together.empty()) out["together"] = to_json(report.together, view.knowledge);
  out["facts"] = facts::facts_value(view.facts);
  return out;
}

std::string doctor_json(const DoctorView& view) { return doctor_value(view).dump(2) + "\n"; }

}  // namespace cufit::report
