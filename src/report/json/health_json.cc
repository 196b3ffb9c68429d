// SPDX-License-Identifier: Apache-2.0
#include "report/health.h"
#include "report/json/doctor_value.h"
#include "resolve/fleet/fingerprint.h"

namespace cufit::report {
namespace {

const char* usable_word(checks::Usable usable) {
  return usable == checks::Usable::yes ? "yes" : usable == checks::Usable::no ? "no" : "unknown";
}

const char* level_word(checks::HealthLevel level) {
  return level == checks::HealthLevel::error     ? "error"
         : level == checks::HealthLevel::warning ? "warning"
         : level == checks::HealthLevel::unknown ? "unknown"
                                                 : "off";
}

Json health_value(const checks::HealthReport& report) {
  Json out;
  out["usable"] = usable_word(report.usable);
  out["gpus"] = report.gpus;
  if (!report.unknown_because.empty()) out["unknown_because"] = report.unknown_because;
  out["rules"] = Json::array();
  for (const checks::HealthReport::Rule& rule : report.rules)
    out["rules"].push_back({{"rule", rule.id},
                            {"level", level_word(rule.level)},
                            {"state", rule.level == checks::HealthLevel::off
                                          ? "not_asked"
                                          : checks::to_string(rule.state)},
                            {"source", rule.source}});
  out["missing"] = Json::array();
  for (const checks::HealthReport::Missing& one : report.missing)
    out["missing"].push_back({{"what", one.what}, {"why", one.why}});
  return out;
}

}  // namespace

std::string health_json(const HealthView& view) {
  checks::Report report;
  report.findings = view.report.findings;
  report.verdict = view.report.usable == checks::Usable::no        ? checks::LinkState::broken
                   : view.report.usable == checks::Usable::unknown ? checks::LinkState::unknown
                   : view.report.findings.empty()                  ? checks::LinkState::ok
                                                                   : checks::LinkState::limited;
  Json out = doctor_value({view.facts, report, view.knowledge});
  out["action"] = view.report.action;
  out["fingerprint"] = resolve::fingerprint_of(view.facts, "").id;
  out["health"] = health_value(view.report);
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
