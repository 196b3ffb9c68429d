// SPDX-License-Identifier: Apache-2.0
// All of it as one compose file, and the table of what needs no lock.
#include <algorithm>

#include "base/format.h"
#include "report/export/export_template.h"
#include "report/export/monitoring.h"
#include "report/json/json_value.h"

namespace cufit::report {
namespace {

// Where alerts go until the user names a place: a port that nothing listens on answers at once.
constexpr std::string_view k_webhook = "http://127.0.0.1:9099/";
// The same from a container, or what the variable says: compose fills it in, so its `$` stays one.
constexpr std::string_view k_compose_webhook =
    "${CUFIT_WEBHOOK:-http://host.docker.internal:9099/}";
constexpr std::string_view k_webhook_place = "@webhook@";

// A text as the content of a config: six columns further in, `$` doubled, for compose fills in
// variables there.
std::string in_compose(std::string_view text) {
  std::string out;
  for (const std::string_view line : split_lines(text)) {
    if (!out.empty()) out += '\n';
    if (!line.empty()) out += "      ";
    for (const char c : line) out += c == '$' ? std::string("$$") : std::string(1, c);
  }
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

}  // namespace

std::string compose_monitoring(const MonitoringView& view) {
  Scope scope;
  scope.values["version"] = CUFIT_VERSION;
  scope.values["rules"] = in_compose(prometheus_rules(view));
  std::string alerts = in_compose(alertmanager_config(view, k_webhook_place));
  for (size_t at = alerts.find(k_webhook_place); at != alerts.npos;
       at = alerts.find(k_webhook_place))
    alerts.replace(at, k_webhook_place.size(), k_compose_webhook);
  scope.values["alertmanager"] = std::move(alerts);
  scope.values["board"] = in_compose(grafana_board(view));
  return fill_template(export_template("compose-monitoring.yaml"), scope, view.lang,
                       view.knowledge);
}

bool is_monitoring_format(std::string_view to) {
  const std::vector<std::string_view> all = split(k_monitoring_formats, ' ');
  return std::find(all.begin(), all.end(), to) != all.end();
}

std::vector<ExportFile> export_monitoring(const MonitoringView& view) {
  if (view.to == "prometheus-rules") return {{"cufit.rules.yml", prometheus_rules(view)}};
  if (view.to == "alertmanager")
    return {{"alertmanager.yml", alertmanager_config(view, k_webhook)}};
  if (view.to == "grafana") return {{"cufit-board.json", grafana_board(view)}};
  if (view.to == "slurm-submit") return {{"cli_filter.lua", slurm_submit_filter(view)}};
  if (starts_with(view.to, "slurm-")) return slurm_files(view);
  CUFIT_CHECK(view.to == "compose-monitoring", "a format that needs a lock");
  return {{"compose-monitoring.yaml", compose_monitoring(view)}};
}

std::string monitoring_json(const MonitoringView& view, const std::vector<ExportFile>& files) {
  Json out;
  out["schema"] = "cufit.export/1";
  out["to"] = view.to;
  put_export_files(files, out);
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
