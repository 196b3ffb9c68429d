// SPDX-License-Identifier: Apache-2.0
// What Slurm runs on a node: its health check, and the looks before and after a job. Each asks
// `cufit doctor --fast`.
#include "report/export/export_template.h"
#include "report/export/monitoring.h"

namespace cufit::report {

std::vector<ExportFile> slurm_files(const MonitoringView& view) {
  Scope scope;
  scope.values["version"] = CUFIT_VERSION;
  const auto file = [&](const char* path, const char* from) {
    return ExportFile{path, fill_template(export_template(from), scope, view.lang, view.knowledge),
                      true};
  };
  if (view.to == "slurm-health") return {file("cufit-healthcheck", "cufit-healthcheck.sh")};
  return {file("cufit-prolog", "cufit-prolog.sh"), file("cufit-epilog", "cufit-epilog.sh")};
}

}  // namespace cufit::report
