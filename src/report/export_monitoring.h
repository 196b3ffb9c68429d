// SPDX-License-Identifier: Apache-2.0
// `cufit export` of what needs no lock: alert rules, Alertmanager, a Grafana board, and a compose
// file that starts them all around `cufit exporter`. Rules and board are rows of data/, put into
// the form of each tool here; the files' frames are src/report/export/templates/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "knowledge/knowledge.h"
#include "report/export.h"

namespace cufit::report {

struct MonitoringView {
  std::string to;  // of k_monitoring_formats
  std::string lang;
  const knowledge::Knowledge& knowledge;
};

bool is_monitoring_format(std::string_view to);

// One file each but "slurm-prolog". `to` is of k_monitoring_formats: CUFIT_CHECK.
std::vector<ExportFile> export_monitoring(const MonitoringView& view);

// Schema cufit.export/1, without a lock and its classes.
std::string monitoring_json(const MonitoringView& view, const std::vector<ExportFile>& files);

}  // namespace cufit::report
