// SPDX-License-Identifier: Apache-2.0
// Alert rules as Prometheus reads them, and the Alertmanager configuration that goes with them.
#include <algorithm>

#include "base/format.h"
#include "base/json.h"
#include "report/export/export_template.h"
#include "report/export/monitoring.h"

namespace cufit::report {
namespace {

// What Prometheus makes of the value that fired.
std::string_view shown_value(std::string_view show) {
  if (show == "percent") return "{{ $value | humanizePercentage }}";
  if (show == "bytes") return "{{ $value | humanize1024 }}B";
  if (show == "duration") return "{{ $value | humanizeDuration }}";
  return "{{ $value | printf \"%.0f\" }}";
}

// A label of the alert. Slurm's `job` is renamed by Prometheus, whose own label has that name.
std::string shown_label(std::string_view label) {
  return format("{{{{ $labels.{} }}}}", label == "job" ? "exported_job" : label);
}

// The reason of the number that fired.
std::string shown_xid(const knowledge::AlertRule& rule, const MonitoringView& view) {
  std::string out;
  for (const knowledge::AlertXid& row : view.knowledge.alert_xids) {
    if (row.rule != rule.id) continue;
    const std::string_view why = view.lang == "zh" ? row.zh : row.why;
    out += format("{{{{ {}if eq $labels.xid \"{}\" }}}}Xid {}{}{}", out.empty() ? "" : "else ",
                  row.number, row.number, view.lang == "zh" ? "：" : ": ", why);
  }
  return out.empty() ? out : out + "{{ end }}";
}

// A string of YAML on one line: one of JSON, but for letters that are not ASCII.
std::string yaml_text(const std::string& text) { return Json(text).dump(); }

Scope rule_scope(const knowledge::AlertRule& rule, const MonitoringView& view) {
  const bool zh = view.lang == "zh";
  Scope scope;
  scope.values["alert"] = alert_name(rule.id);
  scope.values["rule"] = rule.id;
  scope.values["expr"] = rule.expr;
  scope.values["hold"] = rule.hold;
  scope.values["severity"] = rule.severity;
  const std::string summary = alert_text(zh ? rule.summary_zh : rule.summary, rule, view);
  scope.values["summary"] = yaml_text(shown_label("instance") + (zh ? "：" : ": ") + summary);
  scope.values["description"] =
      yaml_text(alert_text(zh ? rule.description_zh : rule.description, rule, view));
  scope.values["runbook"] = yaml_text(std::string(rule.runbook));
  return scope;
}

}  // namespace

std::string alert_name(std::string_view rule) {
  std::string out = "Cufit";
  bool begins = true;
  for (const char c : rule) {
    if (c != '_') out += begins && c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
    begins = c == '_';
  }
  return out;
}

std::string alert_text(std::string_view text, const knowledge::AlertRule& rule,
                       const MonitoringView& view) {
  std::string out;
  while (!text.empty()) {
    const size_t begin = std::min(text.find('{'), text.size());
    out += text.substr(0, begin);
    text.remove_prefix(begin);
    if (text.empty()) break;
    const size_t end = text.find('}');
    CUFIT_CHECK(end != text.npos, "a text of an alert rule has a brace that is not closed");
    const std::string_view name = text.substr(1, end - 1);
    if (name == "value")
      out += shown_value(rule.show);
    else if (name == "xid_why")
      out += shown_xid(rule, view);
    else
      out += shown_label(name);
    text.remove_prefix(end + 1);
  }
  return out;
}

std::string prometheus_rules(const MonitoringView& view) {
  Scope scope;
  scope.values["version"] = CUFIT_VERSION;
  for (const knowledge::AlertRule& rule : view.knowledge.alert_rules)
    scope.lists["rules"].push_back(rule_scope(rule, view));
  return fill_template(export_template("cufit.rules.yml"), scope, view.lang, view.knowledge);
}

std::string alertmanager_config(const MonitoringView& view, std::string_view webhook) {
  Scope scope;
  scope.values["version"] = CUFIT_VERSION;
  scope.values["webhook"] = webhook;
  for (const char* name : {"critical", "warning", "info"}) {
    Scope one;
    one.values = {{"name", name},
                  {"resolved", name == std::string_view("info") ? "false" : "true"}};
    scope.lists["receivers"].push_back(std::move(one));
  }
  return fill_template(export_template("alertmanager.yml"), scope, view.lang, view.knowledge);
}

}  // namespace cufit::report
