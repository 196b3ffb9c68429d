// SPDX-License-Identifier: Apache-2.0
// The writers of export_monitoring.h, one text each.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "report/export_monitoring.h"

namespace cufit::report {

// "gpu_xid_fatal" -> "CufitGpuXidFatal": the name of a rule's alert.
std::string alert_name(std::string_view rule);

// A text of data/alert_rules.toml as Prometheus fills it: {gpu} -> {{ $labels.gpu }}, {value} by the
// rule's `show`, {xid_why} by the rows of alert_xid.
std::string alert_text(std::string_view text, const knowledge::AlertRule& rule,
                       const MonitoringView& view);

// "files" of cufit.export/1 (export.cc).
void put_export_files(const std::vector<ExportFile>& files, Json& out);

std::string prometheus_rules(const MonitoringView& view);  // monitoring_rules.cc
// `webhook`: where alerts are sent to.
std::string alertmanager_config(const MonitoringView& view, std::string_view webhook);
std::string grafana_board(const MonitoringView& view);        // monitoring_board.cc
std::string slurm_submit_filter(const MonitoringView& view);  // slurm_submit.cc
std::string compose_monitoring(const MonitoringView& view);   // monitoring_compose.cc

// "slurm-health": the HealthCheckProgram; "slurm-prolog": prolog and epilog. slurm_files.cc
std::vector<ExportFile> slurm_files(const MonitoringView& view);

}  // namespace cufit::report
